import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import Redis from 'ioredis';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import * as redis5 from 'redis5';
import { LockLostError, type RedisClient, RedisLockRegistry } from '../../lib';
import { fromBun } from '../../lib/clients/bun';
import { fromIoredis } from '../../lib/clients/ioredis';
import { fromUpstash } from '../../lib/clients/upstash';
import { fromGlide } from '../../lib/clients/valkey-glide';
import { mockRedis } from '../support/mock-redis';

const run = promisify(execFile);
/** Run by Node, which works on Windows too. */
const TSC = join(__dirname, '../../node_modules/typescript/bin/tsc');

const PASSWORD = 'correct-horse';
const URL = `redis://locks:${PASSWORD}@redis.internal:6379`;

const create = (client: unknown, options: Record<string, unknown> = {}) =>
  new RedisLockRegistry(
    client as RedisClient,
    typeof options === 'string' ? options : { registryKey: 'orders', ...options },
  );

/** What an error says, and what to do about it, for what people most often do wrong. */
const messageOf = (acquiring: Promise<unknown>): Promise<string> =>
  acquiring.then(
    () => 'nothing was refused',
    (error: Error) => error.message,
  );

function errorThrown(make: () => unknown): Error {
  try {
    make();
  } catch (error) {
    return error as Error;
  }
  throw new Error('Nothing was refused');
}

/** The error of a constructor that must refuse its arguments. */
const refusal = (...[client, options]: Parameters<typeof create>) => errorThrown(() => create(client, options));

it('An error of an acquisition says what to do when the client was never connected', async () => {
  const registry = create(createClient());
  expect(await messageOf(registry.obtain('order:42').lock())).toBe(
    'Lock "order:42" could not be acquired: the client failed: The client is closed (or it was never connected: call its connect() first)',
  );
  await registry.close({ timeout: 0 });
});

it.each([
  ['a sentinel', () => createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 9 }] })],
  [
    'a sentinel of version 5',
    () => redis5.createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 9 }] }),
  ],
  ['a cluster of version 5', () => redis5.createCluster({ rootNodes: [{ socket: { port: 9 } }] })],
])(
  'An error of an acquisition says what to do when %s was never connected, which throws a TypeError then',
  async (_name, make) => {
    const registry = create(make() as never);
    const message = await messageOf(registry.obtain('order:42').lock());
    expect(message).toMatch(
      / the client failed: The client is closed \(or it was never connected: call its connect\(\) first\)$/,
    );
    await registry.close({ timeout: 0 });
  },
);

it.each([
  ['fromIoredis', fromIoredis],
  ['fromGlide', fromGlide],
  ['fromBun', fromBun],
])('An adapter that is given a client of node-redis says that it needs none: %s', (_name, adapt) => {
  const message = errorThrown(() => adapt(createClient() as never)).message;
  expect(message).toContain('needs no adapter');
  expect(message).toContain('pass it to RedisLockRegistry as it is');
});

it.each<[string, (value: never) => unknown, string]>([
  ['fromIoredis', fromIoredis, 'new Redis(url)'],
  ['fromGlide', fromGlide, 'await GlideClient.createClient({ addresses })'],
  ['fromBun', fromBun, 'new RedisClient(url)'],
  ['fromUpstash', fromUpstash, 'new Redis({ url, token })'],
])('An adapter that is given a URL or options says how a client of its own kind is made: %s', (_name, adapt, make) => {
  for (const value of [URL, {}, { url: URL }]) {
    const { message } = errorThrown(() => adapt(value as never));
    expect(message).toMatch(/^Expected an? .*, got (a string|an options object); make a client: /);
    expect(message.endsWith(make)).toBe(true);
  }
});

/** Some of what the clients have. */
const method = (): void => undefined;
const PARTS = { evalsha: method, defineCommand: method, duplicate: method, disconnect: method, options: {} };
it.each<[string, (value: never) => unknown, object, missing: string]>([
  ['fromIoredis', fromIoredis, new (class RedisMock {})(), 'an instance of RedisMock'],
  ['fromIoredis', fromIoredis, Object.assign(new (class RedisMock {})(), PARTS), '`call`, `status`'],
  ['fromIoredis', fromIoredis, { ...PARTS, call: method, status: 1 }, '`status`'],
  ['fromGlide', fromGlide, { customCommand: method, invokeScript: method }, '`close`'],
  [
    'fromBun',
    fromBun,
    { send: method, connected: true, evalsha: method, duplicate: method },
    '`subscribe`, `unsubscribe`',
  ],
  ['fromUpstash', fromUpstash, { evalsha: method, createScript: method }, '`client.request`'],
])(
  'An adapter that is given a mock names what it misses, and where to go, not itself: %s (%#)',
  (name, adapt, mock, missing) => {
    const { message } = errorThrown(() => adapt(mock as never));
    expect(message).toContain(missing);
    expect(message).not.toContain(name);
    if (missing.startsWith('`')) expect(message).toContain("InMemoryLockRegistry in 'redis-lock-registry/testing'");
  },
);

it('An adapter that is given a client of another kind names its adapter', () => {
  const redis = new Redis({ lazyConnect: true });
  expect(errorThrown(() => fromGlide(redis as never)).message).toContain('fromIoredis(redis)');
  redis.disconnect();
});

it('A lost lease whose key is gone says that Redis may have restarted without it', () => {
  expect(new LockLostError('order:42', 'expired').message).toMatch(/or Redis restarted without it$/);
});

const sentinels = { name: 'locks', sentinelRootNodes: [{ host: '127.0.0.1', port: 26_379 }] };
it.each<[string, (keyPrefix: string) => unknown]>([
  ['client', (keyPrefix) => createClient({ keyPrefix })],
  ['pool', (keyPrefix) => createClientPool({ keyPrefix })],
  ['cluster', (keyPrefix) => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1' }], keyPrefix })],
  ['sentinel', (keyPrefix) => createSentinel({ ...sentinels, keyPrefix })],
])('A wrong client that is a %s of node-redis with a keyPrefix is refused, with what to use instead', (_name, make) => {
  const error = refusal(make('app:'));
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toMatch(/`client`.*keyPrefix.*channels.*registryKey/);
  create(make(''));
});

it.each<[string, () => [client: unknown, options?: Record<string, unknown>], says: RegExp]>([
  [
    'options as client',
    () => [{ socket: { host: 'redis.internal' }, password: PASSWORD }],
    /`client`.*createClient\(\{ url \}\)/,
  ],
  ['a URL as options', () => [mockRedis(), URL as never], /`options` to be an object/],
  ['a URL as subscriber', () => [mockRedis(), { subscriber: URL }], /`subscriber`/],
  ['options as subscriber', () => [mockRedis(), { subscriber: { url: URL, password: PASSWORD } }], /`subscriber`/],
  ['options of a client among those of the registry', () => [mockRedis(), { url: URL, password: PASSWORD }], /`url`/],
  ['a password as an unknown option', () => [mockRedis(), { password: PASSWORD }], /`password`/],
])('%s: the message says what to do, and quotes no URL and no password', (_name, argumentsOf, says) => {
  const error = refusal(...argumentsOf());
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toMatch(says);
  expect(`${error.message}\n${error.stack}`).not.toContain(PASSWORD);
  expect(error.message).not.toContain('redis.internal');
});

it.each([
  ['expiresAfter', 'expireAfter'],
  ['idleBetweenTry', 'idleBetweenTries'],
  ['locktype', 'lockType'],
  ['maxhold', 'maxHold'],
  ['minReplica', 'minReplicas'],
  ['ttl', 'expireAfter'],
])('%s is answered with the one that was probably meant: %s', (given, meant) => {
  expect(refusal(mockRedis(), { [given]: 1 }).message).toContain(
    `Unknown option \`${given}\` (1); did you mean \`${meant}\`?; known are `,
  );
});

it.each(['retryCount', 'url'])('%s, which is like none, is answered with the list alone', (given) => {
  expect(refusal(mockRedis(), { [given]: 1 }).message).toContain(
    `Unknown option \`${given}\` (1); known are registryKey, `,
  );
});

it('An unknown option of a call is answered so too', async () => {
  const registry = create(mockRedis());
  for (const name of ['waitTimes', 'timeout']) {
    const locking = registry.obtain('order:42').lock({ [name]: 5 } as object);
    expect(await messageOf(locking)).toContain('did you mean `waitTime`?');
  }
});

describe('The compiler', () => {
  // Inside the project, so that the program finds its packages.
  const folder = join(__dirname, '.compiled');

  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('The compiler names an adapter for a client that needs one', async () => {
    await mkdir(folder, { recursive: true });
    const program = `import { Redis } from 'ioredis';
import { RedisLockRegistry } from '../../../lib';
export const registry = new RedisLockRegistry(new Redis(), { registryKey: 'orders' });
`;
    await writeFile(join(folder, 'program.ts'), program);
    const settings = { extends: '../../../tsconfig.json', compilerOptions: { noEmit: true, rootDir: '../../..' } };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ ...settings, include: ['*.ts'] }));
    const compiling = run(process.execPath, [TSC, '-p', folder], { timeout: 150_000 });
    const said = await compiling.then(
      () => 'nothing',
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(said).toContain('FromIoredis');
  });
});
