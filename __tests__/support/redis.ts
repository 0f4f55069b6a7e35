import { randomUUID } from 'node:crypto';
import { afterAll, describe } from '@jest/globals';
import { createClient, type RedisClientOptions } from 'redis';
import type { RedisAddress } from '../../support/redis';

export type TestClient = ReturnType<typeof createClient>;

const { TEST_REDIS_URL, TEST_REDIS_SOCKETS, TEST_EMBEDDED_URLS, JEST_WORKER_ID } = process.env;

/** Each worker of the test run has its own servers. */
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

const embeddedUrl = ofThisWorker(TEST_EMBEDDED_URLS);

/** How to reach js-redis-server; undefined where it could not be installed. */
export const embeddedRedis: RedisClientOptions | undefined = embeddedUrl ? parse(embeddedUrl) : undefined;

/** `describe` for tests that need a real Redis; skipped where there is none. */
export const describeReal = realRedis ? describe : describe.skip;

/** `describe` for tests on js-redis-server; skipped where it could not be installed. */
export const describeEmbedded = embeddedRedis ? describe : describe.skip;

/** A connected client of the real Redis, closed when the tests of the file are over. */
export function createRealClient(options: RedisClientOptions = {}): Promise<TestClient> {
  if (!realRedis) throw new Error('This test needs a real Redis: put it into describeReal');
  return connect(realRedis, options);
}

/** A connected client of js-redis-server, closed when the tests of the file are over. */
export function createEmbeddedClient(options: RedisClientOptions = {}): Promise<TestClient> {
  if (!embeddedRedis) throw new Error('This test needs js-redis-server: put it into describeEmbedded');
  return connect(embeddedRedis, options);
}

/** A key that no other test uses: all files share one Redis, which may be the developer's own (REDIS_URL). */
export function uniqueKey(name = 'key'): string {
  return `redis-lock-registry-test:${randomUUID()}:${name}`;
}

/** The address of the server, for a proxy in front of it. */
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
  client.on('error', () => {}); // without a listener, a cut connection would end the process
  clients.add(client);
  await client.connect();
  return client;
}

/** An address that the test gives, such as that of a proxy, replaces the server's. */
function chooseSocket(server: RedisClientOptions, { socket }: RedisClientOptions) {
  const elsewhere = socket && ('port' in socket || 'path' in socket);
  return (elsewhere ? socket : { ...server.socket, ...socket }) as NonNullable<RedisClientOptions['socket']>;
}

/** Parsed here because node-redis lets a URL overrule any other address. */
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
