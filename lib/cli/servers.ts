import type { RedisClient } from '../redis/client';
import { messageOf } from '../redis/failure';
import type { Values } from './arguments';
import { EXIT, ExitError, usageError } from './output';

/** ms until a server that does not answer counts as not there. */
const TIMEOUT = 5_000;

/** A client for a registry. */
interface Client {
  readonly client: RedisClient;
  close(): void;
}

/** A connection to one server. */
export interface Server extends Client {
  readonly address: string;
  /** Rejects with what the server says, or `ExitError` where it does not answer. */
  send(...command: string[]): Promise<unknown>;
}

/** The servers that have the locks: one, or the masters of a cluster. */
export interface Servers {
  readonly masters: readonly Server[];
  /** Why others could not be asked. */
  readonly missing: readonly string[];
  readonly isCluster: boolean;
  /** For a registry; it finds the masters by itself. */
  makeClient(): Promise<Client>;
  close(): void;
}

/** A connection that was there is made again; one that was never there is an error. */
function connect(url: URL) {
  let isConnected = false;
  const reconnectStrategy = (retries: number) => isConnected && Math.min(50 * 2 ** retries, 2_000);
  const client = load().createClient({ url: url.href, socket: { connectTimeout: TIMEOUT, reconnectStrategy } });
  client.on('ready', () => {
    isConnected = true;
  });
  return opened(client);
}

function connectCluster(url: URL): Promise<Client> {
  const socket = { connectTimeout: TIMEOUT, ...(url.protocol === 'rediss:' ? { tls: true as const } : {}) };
  return opened(load().createCluster({ rootNodes: [{ url: url.href }], defaults: { ...secretsOf(url), socket } }));
}

function connectBySentinel(url: URL, name: string): Promise<Client> {
  const sentinelRootNodes = [{ host: url.hostname, port: portOf(url) }];
  const nodeClientOptions = { ...secretsOf(url), database: Number(url.pathname.slice(1) || 0) };
  return opened(load().createSentinel({ name, sentinelRootNodes, nodeClientOptions }));
}

function secretsOf({ username, password }: URL) {
  const decoded = Object.entries({ username, password }).map(([name, text]) => [name, decodeURIComponent(text)]);
  return Object.fromEntries(decoded.filter(([, text]) => text !== '')) as { username?: string; password?: string };
}

async function opened<T extends Openable>(client: T) {
  client.on('error', () => undefined);
  await client.connect();
  return { client, close: () => client.destroy() };
}

interface Openable extends RedisClient {
  on(event: 'error', listener: () => void): unknown;
  connect(): Promise<unknown>;
  destroy(): void;
}

/** Loaded when it is used: without it, --help works. */
function load(): typeof import('redis') {
  try {
    return require('redis');
  } catch {
    throw new ExitError(EXIT.unavailable, 'The package "redis" is missing: npm install redis');
  }
}

/** Connects to what the URL names: a server, or by way of it a cluster, or a master that sentinels watch. */
export async function openServers(values: Values): Promise<Servers> {
  const url = urlOf(values.url ?? process.env.REDIS_URL ?? 'redis://localhost:6379');
  const seed = await open(url);
  const info = String(await seed.send('INFO').catch(() => ''));
  if (values.sentinel !== undefined || /^redis_mode:sentinel/m.test(info)) {
    seed.close();
    const [name, host, port] = masterIn(info, values.sentinel, seed.address);
    return { ...ofOne(await open(at(url, host, port))), makeClient: () => connectBySentinel(url, name) };
  }
  if (!values.cluster && !/^redis_mode:cluster/m.test(info)) {
    return { ...ofOne(seed), makeClient: async () => ({ client: seed.client, close: () => undefined }) };
  }
  const ranges = (await seed.send('CLUSTER', 'SLOTS')) as [first: number, last: number, [host: string, port: number]][];
  seed.close();
  const nodes = new Map(ranges.map(([, , [host, port]]) => [`${host}:${port}`, at(url, host || url.hostname, port)]));
  const opening = [...nodes.values()].map((node) => open(node).catch((error: Error) => error.message));
  const tried = await Promise.all(opening);
  const masters = tried.filter((one) => typeof one !== 'string');
  const missing = tried.filter((one) => typeof one === 'string');
  const unserved = ranges.reduce((left, [first, last]) => left - (last - first + 1), 16_384);
  if (unserved > 0) missing.push(`No server has ${unserved} of the 16384 slots of the cluster`);
  const close = () => {
    for (const master of masters) master.close();
  };
  return { masters, missing, isCluster: true, makeClient: () => connectCluster(url), close };
}

function ofOne(server: Server): Omit<Servers, 'makeClient'> {
  return { masters: [server], missing: [], isCluster: false, close: () => server.close() };
}

async function open(url: URL): Promise<Server> {
  const address = `${url.hostname}:${portOf(url)}`;
  try {
    const { client, close } = await within(connect(url));
    return { address, client, close, send: (...command) => within(client.sendCommand(command)) };
  } catch (error) {
    if (error instanceof ExitError) throw error;
    // Of several addresses that were tried, the first.
    const first = (error as AggregateError).errors?.[0] ?? error;
    throw new ExitError(EXIT.unavailable, `Redis at ${address} cannot be reached: ${messageOf(first)}`);
  }
}

function within<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(new ExitError(EXIT.unavailable, `no answer within ${TIMEOUT / 1_000} s`));
    const timer = setTimeout(silent, TIMEOUT);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The name and the address of a master, by the INFO of a sentinel. */
function masterIn(
  info: string,
  wanted: string | undefined,
  sentinel: string,
): [name: string, host: string, port: string] {
  const masters = [...info.matchAll(/^master\d+:name=(.*),status=.*,address=(.*):(\d+),/gm)];
  const named = masters.filter(([, name]) => wanted === undefined || name === wanted);
  const [[, name = '', host = '', port = ''] = []] = named;
  if (named.length === 1) return [name, host, port];
  const known = masters.map(([, one]) => one).join(', ') || 'none';
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

function at(url: URL, host: string, port: number | string): URL {
  const other = new URL(url);
  other.hostname = host.includes(':') ? `[${host}]` : host;
  other.port = String(port);
  return other;
}

function portOf({ port }: URL): number {
  return Number(port || 6379);
}
