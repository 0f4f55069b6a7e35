import { serversOf } from '../inspection/servers';
import { fromIoredis } from '../ioredis';
import type { RedisClient } from '../redis/client';
import { answered, messageOf } from '../redis/failure';
import type { Values } from './arguments';
import { EXIT, ExitError, usageError } from './output';

/** ms until a server that does not answer counts as not there. */
const TIMEOUT = 5_000;

interface Unconnected {
  readonly client: RedisClient;
  connect(): Promise<unknown>;
  close(): unknown;
}

/** A client of what the URL names. */
export interface Connection extends Unconnected {
  /** As the URL has it. */
  readonly address: string;
}

/** What a client is of: a server, a cluster that the server is a node of, or the master that a sentinel has this name for. */
type Topology = 'server' | 'cluster' | { readonly master: string };

type Make = (topology: Topology, url: URL) => Unconnected;

/** ms before a connection is made again: of one that was there. One that was never there is an error. */
function retries() {
  let isConnected = false;
  const connected = (): void => {
    isConnected = true;
  };
  return { connected, pause: (count: number) => (isConnected ? Math.min(50 * 2 ** count, 2_000) : undefined) };
}

function withNodeRedis(redis: typeof import('redis')): Make {
  return (topology, url) => {
    const { connected, pause } = retries();
    const secrets = secretsOf(url);
    const tls = url.protocol === 'rediss:' ? { tls: true as const } : {};
    const client =
      topology === 'server'
        ? redis.createClient({
            url: url.href,
            socket: { connectTimeout: TIMEOUT, reconnectStrategy: (count) => pause(count) ?? false },
          })
        : topology === 'cluster'
          ? redis.createCluster({
              rootNodes: [{ url: url.href }],
              // Else it connects to all nodes at once, and waits for one that is not there.
              minimizeConnections: true,
              defaults: { ...secrets, socket: { connectTimeout: TIMEOUT, ...tls } },
            })
          : redis.createSentinel({
              name: topology.master,
              sentinelRootNodes: [{ host: url.hostname, port: portOf(url) }],
              sentinelClientOptions: secrets,
              nodeClientOptions: { ...secrets, database: databaseOf(url) },
            });
    client.on('error', () => undefined);
    client.on('ready', connected);
    const close = async () => {
      // Version 5 throws when it was never connected.
      await client.destroy();
    };
    return { client: client as RedisClient, connect: () => client.connect(), close: () => close().catch(ignore) };
  };
}

/** ioredis, or iovalkey. */
function withIoredis({ Cluster, Redis }: typeof import('ioredis')): Make {
  return (topology, url) => {
    const { connected, pause } = retries();
    const node = { host: url.hostname.replace(/^\[|\]$/g, ''), port: portOf(url) };
    const common = {
      ...secretsOf(url),
      ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
      connectTimeout: TIMEOUT,
      // It would keep the process for as long, though the connection is closed.
      disconnectTimeout: 100,
      // It asks with INFO, which not every user may.
      enableReadyCheck: false,
    };
    const single = {
      ...common,
      db: databaseOf(url),
      lazyConnect: true,
      retryStrategy: (count: number) => pause(count) ?? null,
    };
    const redis =
      topology === 'server'
        ? new Redis({ ...single, ...node })
        : topology === 'cluster'
          ? new Cluster([node], { redisOptions: common, lazyConnect: true, slotsRefreshTimeout: TIMEOUT })
          : new Redis({
              ...{ ...single, sentinels: [node], name: topology.master },
              ...{ sentinelUsername: common.username, sentinelPassword: common.password },
            });
    let last: unknown;
    redis.on('error', (error) => {
      last = error;
    });
    redis.on('ready', connected);
    const connect = () => redis.connect().catch((error) => Promise.reject(last ?? error));
    return { client: fromIoredis(redis), connect, close: () => redis.disconnect() };
  };
}

/** The first of these packages that is installed. Loaded when it is used: without it, --help works. */
function clients(): Make {
  const packages = { redis: withNodeRedis, ioredis: withIoredis, iovalkey: withIoredis };
  for (const [name, make] of Object.entries(packages)) {
    try {
      return make(require(name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new ExitError(EXIT.unavailable, 'A client is missing: npm install redis, or ioredis');
}

/** Connects to what the URL names: a server, or by way of it a cluster, or a master that sentinels watch. */
export async function connectTo(values: Values): Promise<Connection> {
  const url = urlOf(values.url ?? process.env.REDIS_URL ?? 'redis://localhost:6379');
  const make = clients();
  const seed = await opened(make('server', url), url);
  const info = await infoOf(seed.client);
  const isCluster = values.cluster || /^redis_mode:cluster/m.test(info);
  const isSentinel = values.sentinel !== undefined || /^redis_mode:sentinel/m.test(info);
  if (!isCluster && !isSentinel) return seed;
  seed.close();
  const topology = isSentinel ? { master: masterIn(info, values.sentinel, seed.address) } : 'cluster';
  return opened(make(topology, url), url);
}

async function opened(made: Unconnected, url: URL): Promise<Connection> {
  const address = `${url.hostname}:${portOf(url)}`;
  try {
    await answered(made.connect(), TIMEOUT);
    return { ...made, address };
  } catch (error) {
    made.close();
    // Of several addresses that were tried, the first.
    const first = (error as AggregateError).errors?.[0] ?? error;
    throw new ExitError(EXIT.unavailable, `Redis at ${address} cannot be reached: ${messageOf(first)}`);
  }
}

/** '': the user has no right to it. */
async function infoOf(client: RedisClient): Promise<string> {
  const { asked } = await serversOf(client, TIMEOUT);
  return String((await asked[0]?.send('INFO').catch(() => '')) ?? '');
}

/** The name of a master, by the INFO of a sentinel. */
function masterIn(info: string, wanted: string | undefined, sentinel: string): string {
  const names = [...info.matchAll(/^master\d+:name=(.*?),status=/gm)].map(([, name = '']) => name);
  const named = names.filter((name) => wanted === undefined || name === wanted);
  if (named.length === 1) return named[0] as string;
  const known = names.join(', ') || 'none';
  throw usageError(`--sentinel takes the name of a master; the sentinel at ${sentinel} knows ${known}`);
}

function urlOf(text: string): URL {
  try {
    const url = new URL(text);
    if (/^rediss?:$/.test(url.protocol) && url.hostname !== '') return url;
  } catch {}
  // It is not quoted: it may have a password.
  throw usageError('--url is not a URL such as redis://localhost:6379');
}

function ignore(): void {}

function secretsOf({ username, password }: URL) {
  const decoded = Object.entries({ username, password }).map(([name, text]) => [name, decodeURIComponent(text)]);
  return Object.fromEntries(decoded.filter(([, text]) => text !== '')) as { username?: string; password?: string };
}

function databaseOf({ pathname }: URL): number {
  return Number(pathname.slice(1) || 0);
}

function portOf({ port }: URL): number {
  return Number(port || 6379);
}
