import { randomUUID } from 'node:crypto';
import { afterAll, describe } from '@jest/globals';
import { createClient, type RedisClientOptions } from 'redis';
import type { RedisAddress } from '../../scripts/redis';

export type TestClient = ReturnType<typeof createClient>;

const { TEST_REDIS_URL, TEST_REDIS_SOCKETS, TEST_EMBEDDED_URLS, JEST_WORKER_ID } = process.env;

/** Each worker of the test run has servers of its own. */
function ofThisWorker(servers: string | undefined): string | undefined {
  return servers?.split(',')[Number(JEST_WORKER_ID) - 1];
}

const socketPath = ofThisWorker(TEST_REDIS_SOCKETS);

/** How to reach the real Redis of this run; undefined where there is none. */
export const realRedis: RedisClientOptions | undefined = TEST_REDIS_URL
  ? parse(TEST_REDIS_URL)
  : socketPath
    ? { socket: { path: socketPath, tls: false } }
    : undefined;

/** How to reach js-redis-server, which every run has. */
export const embeddedRedis: RedisClientOptions = parse(ofThisWorker(TEST_EMBEDDED_URLS) as string);

/** `describe` for what only a real Redis can show; left out, and counted as skipped, where there is none. */
export const describeReal = realRedis ? describe : describe.skip;

/** A connected client of the real Redis, closed when the tests of the file are over. */
export function createRealClient(options: RedisClientOptions = {}): Promise<TestClient> {
  if (!realRedis) throw new Error('This test needs a real Redis: put it into describeReal');
  return connect(realRedis, options);
}

/** A connected client of js-redis-server, closed when the tests of the file are over. */
export function createEmbeddedClient(options: RedisClientOptions = {}): Promise<TestClient> {
  return connect(embeddedRedis, options);
}

/** The Redis may be somebody's own (REDIS_URL), and all files share it, so no test may use a fixed name. */
export function uniqueKey(name = 'key'): string {
  return `redis-lock-registry-test:${randomUUID()}:${name}`;
}

/** Where the server listens, for a proxy in front of it. */
export function addressOf(server: RedisClientOptions | undefined): RedisAddress {
  return server?.socket as RedisAddress;
}

const clients = new Set<TestClient>();

afterAll(() => {
  for (const client of clients) if (client.isOpen) client.destroy();
  clients.clear();
});

async function connect(server: RedisClientOptions, options: RedisClientOptions): Promise<TestClient> {
  const client: TestClient = createClient({ ...server, ...options, socket: chooseSocket(server, options) });
  client.on('error', () => {}); // without a listener a cut connection, as in tests of faults, ends the process
  clients.add(client);
  await client.connect();
  return client;
}

/** An address of the test's own, such as that of a proxy, takes the place of the server's. */
function chooseSocket(server: RedisClientOptions, { socket }: RedisClientOptions) {
  const elsewhere = socket && ('port' in socket || 'path' in socket);
  return (elsewhere ? socket : { ...server.socket, ...socket }) as NonNullable<RedisClientOptions['socket']>;
}

/** Not left to node-redis, which lets a URL overrule any other address. */
function parse(url: string): RedisClientOptions {
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  const address = { host: hostname, port: Number(port || 6379) };
  return {
    socket: protocol === 'rediss:' ? { ...address, tls: true } : address,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(pathname.length > 1 && { database: Number(pathname.slice(1)) }),
  };
}
