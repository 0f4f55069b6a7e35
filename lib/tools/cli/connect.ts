import { fromIoredis } from '../../clients/ioredis';
import { destroy, type RedisClient } from '../../redis/client';
import { answered, messageOf } from '../../redis/failure';
import { serversOf, TIMEOUT } from '../inspection/servers';
import type { Values } from './arguments';
import { EXIT, ExitError, usageError } from './output';

/** A client of what the URL names, at the address that it says. */
export interface Connection {
  readonly client: RedisClient;
  readonly address: string;
  /** The number of the database; `undefined`: a cluster has none. */
  readonly database: number | undefined;
  /** The databases that have keys, where the server says it. */
  readonly databases: readonly number[];
  connect(): Promise<unknown>;
  close(): unknown;
}

/** What a client is of: a server, a cluster that the server is a node of, or the master that a sentinel has this name for. */
type Topology = 'server' | 'cluster' | { readonly master: string };

/** What a URL says, and when a connection is made again: one that was there, and not one that was never there. */
function targetOf(url: URL) {
  const given = Object.entries({ username: url.username, password: url.password }).filter(([, text]) => text !== '');
  const secrets = Object.fromEntries(given.map(([name, text]) => [name, decodeURIComponent(text)]));
  const port = Number(url.port || 6379);
  let isConnected = false;
  return {
    address: `${url.hostname}:${port}`,
    node: { host: url.hostname.replace(/^\[|\]$/g, ''), port },
    secrets: secrets as { username?: string; password?: string },
    database: Number(url.pathname.slice(1) || 0),
    isEncrypted: url.protocol === 'rediss:',
    connected(): void {
      isConnected = true;
    },
    /** ms; `undefined`: not again. */
    pause: (count: number) => (isConnected ? Math.min(50 * 2 ** count, 2_000) : undefined),
  };
}

type Target = ReturnType<typeof targetOf>;

function withNodeRedis(redis: typeof import('redis'), topology: Topology, target: Target): Connection {
  const { address, connected, database, isEncrypted, node, pause, secrets } = target;
  const socket = { connectTimeout: TIMEOUT, ...(isEncrypted && { tls: true as const }) };
  const each = { ...secrets, socket };
  const client =
    topology === 'server'
      ? redis.createClient({
          ...secrets,
          database,
          // No `url`: version 6 finds no host in one with an IPv6 address.
          socket: { ...socket, ...node, reconnectStrategy: (count: number) => pause(count) ?? false },
        })
      : topology === 'cluster'
        ? redis.createCluster({
            rootNodes: [{ socket: node }],
            // Else the client connects to all nodes at once, and waits for one that is not there.
            minimizeConnections: true,
            defaults: each,
          })
        : redis.createSentinel({
            name: topology.master,
            sentinelRootNodes: [node],
            sentinelClientOptions: each,
            nodeClientOptions: { ...each, database },
          });
  client.on('error', () => undefined);
  client.on('ready', connected);
  return {
    ...{ client: client as RedisClient, address, databases: [] },
    database: topology === 'cluster' ? undefined : database,
    connect: () => client.connect(),
    close: () => destroy(client),
  };
}

/** ioredis, or iovalkey. */
function withIoredis({ Cluster, Redis }: typeof import('ioredis'), topology: Topology, target: Target): Connection {
  const { address, connected, database, isEncrypted, node, pause, secrets } = target;
  const common = {
    ...secrets,
    ...(isEncrypted ? { tls: {} } : {}),
    connectTimeout: TIMEOUT,
    // A longer timer would keep the process, though the connection is closed.
    disconnectTimeout: 100,
    // The client asks with INFO, which not every user may.
    enableReadyCheck: false,
  };
  const retryStrategy = (count: number) => pause(count) ?? null;
  const single = { ...common, db: database, lazyConnect: true, retryStrategy };
  const redis =
    topology === 'server'
      ? new Redis({ ...single, ...node })
      : topology === 'cluster'
        ? new Cluster([node], { redisOptions: common, lazyConnect: true, slotsRefreshTimeout: TIMEOUT })
        : new Redis({
            ...{ ...single, sentinels: [node], name: topology.master },
            ...{ sentinelUsername: secrets.username, sentinelPassword: secrets.password, sentinelTLS: common.tls },
            enableTLSForSentinelMode: isEncrypted,
          });
  let last: unknown;
  redis.on('error', (error) => {
    last = error;
  });
  redis.on('ready', connected);
  const connect = () => redis.connect().catch((error) => Promise.reject(last ?? error));
  return {
    ...{ client: fromIoredis(redis), address, databases: [], connect, close: () => redis.disconnect() },
    database: topology === 'cluster' ? undefined : database,
  };
}

/** By the first of these packages that is installed. Loaded when it is used: without it, --help works. */
function maker(url: URL): (topology: Topology) => Connection {
  const packages = { redis: withNodeRedis, ioredis: withIoredis, iovalkey: withIoredis };
  for (const [name, make] of Object.entries(packages)) {
    try {
      const loaded = require(name);
      return (topology) => make(loaded, topology, targetOf(url));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new ExitError(EXIT.unavailable, 'A client is missing: npm install redis, or ioredis');
}

/** Connects to what the URL names: a server, or by way of it a cluster, or a master that sentinels watch. */
export async function connectTo(values: Values): Promise<Connection> {
  const url = urlOf(values);
  const make = maker(url);
  const seed = await opened(make('server'));
  const info = await infoOf(seed.client);
  const [, mode] = /^redis_mode:(\w+)/m.exec(info) ?? [];
  const isCluster = values.cluster || mode === 'cluster';
  const isSentinel = values.sentinel !== undefined || mode === 'sentinel';
  const databases = [...info.matchAll(/^db(\d+):keys=/gm)].map(([, number]) => Number(number));
  if (!isCluster && !isSentinel) return { ...seed, databases };
  seed.close();
  if (values.cluster && mode !== undefined && mode !== 'cluster') {
    throw usageError(`--cluster: Redis at ${seed.address} is no node of a cluster`);
  }
  const topology = isSentinel ? { master: masterIn(info, values.sentinel, seed.address) } : 'cluster';
  return opened(make(topology));
}

async function opened(made: Connection): Promise<Connection> {
  try {
    await answered(made.connect(), TIMEOUT);
    return made;
  } catch (error) {
    made.close();
    // The first of several addresses that were tried.
    const first = (error as AggregateError).errors?.[0] ?? error;
    throw new ExitError(EXIT.unavailable, `Redis at ${made.address} cannot be reached: ${messageOf(first)}`);
  }
}

/** '': the user has no right to it. */
async function infoOf(client: RedisClient): Promise<string> {
  const { asked, close } = await serversOf(client, TIMEOUT);
  const info = await asked[0]?.send('INFO').catch(() => '');
  close();
  return String(info ?? '');
}

/** The name of a master, by the INFO of a sentinel. */
function masterIn(info: string, wanted: string | undefined, sentinel: string): string {
  const names = [...info.matchAll(/^master\d+:name=(.*?),status=/gm)].map(([, name = '']) => name);
  const named = names.filter((name) => wanted === undefined || name === wanted);
  if (named.length === 1) return named[0] as string;
  const known = names.join(', ') || 'none';
  throw usageError(`--sentinel takes the name of a master; the sentinel at ${sentinel} knows ${known}`);
}

function urlOf({ url: given }: Values): URL {
  const text = given ?? (process.env.REDIS_URL || 'redis://localhost:6379');
  try {
    const url = new URL(text);
    // Throws for a "%" that escapes nothing.
    decodeURIComponent(`${url.username}:${url.password}`);
    // A "?" or "#" in a password ends the address before it, and messages say the address.
    const isCut = (url.search + url.hash).includes('@');
    if (/^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname) && !isCut) return url;
  } catch {}
  // The URL is not quoted: it may have a password.
  const name = given === undefined ? 'REDIS_URL' : '--url';
  throw usageError(`${name} is not a URL such as redis://localhost:6379/0`);
}
