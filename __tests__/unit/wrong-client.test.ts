import { afterEach, describe, expect, it } from '@jest/globals';
import Redis from 'ioredis';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { mockRedis } from '../support/mock-redis';

const PASSWORD = 'correct-horse';
const URL = `redis://locks:${PASSWORD}@redis.internal:6379`;

/** The error of a constructor that must refuse its arguments. */
function refusal(client: unknown, options: Record<string, unknown> = {}): Error {
  try {
    new RedisLockRegistry(client as RedisClient, { registryKey: 'orders', ...options } as RedisLockRegistryOptions);
  } catch (error) {
    return error as Error;
  }
  throw new Error('It was not refused');
}

describe('A wrong client', () => {
  const opened: Redis[] = [];

  afterEach(() => {
    for (const client of opened.splice(0)) client.disconnect();
  });

  const ioredis = () => {
    const client = new Redis(URL, { lazyConnect: true });
    opened.push(client);
    return client;
  };

  it.each([
    ['a URL', () => URL, /string/],
    ['an options object', () => ({ url: URL, password: PASSWORD }), /object/],
    ['nested options', () => ({ socket: { host: 'redis.internal' }, password: PASSWORD }), /object/],
  ])('that is %s is named by its type, with what to do', (_name, client, type) => {
    const error = refusal(client());
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain('`client`');
    expect(error.message).toMatch(type);
    expect(error.message).toContain('createClient({ url })');
  });

  const sentinels = { name: 'locks', sentinelRootNodes: [{ host: '127.0.0.1', port: 26_379 }] };
  it.each<[string, (keyPrefix: string) => unknown]>([
    ['client', (keyPrefix) => createClient({ keyPrefix })],
    ['pool', (keyPrefix) => createClientPool({ keyPrefix })],
    ['cluster', (keyPrefix) => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1' }], keyPrefix })],
    ['sentinel', (keyPrefix) => createSentinel({ ...sentinels, keyPrefix })],
  ])('that is a %s of node-redis with a keyPrefix is refused, with what to use instead', (_name, make) => {
    const error = refusal(make('app:'));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(/`client`.*keyPrefix.*channels.*registryKey/);
    expect(() => new RedisLockRegistry(make('') as RedisClient, { registryKey: 'orders' })).not.toThrow();
  });

  it.each<[string, () => [client: unknown, options?: Record<string, unknown>]]>([
    ['a URL as client', () => [URL]],
    ['options as client', () => [{ url: URL, password: PASSWORD }]],
    ['an ioredis client', () => [ioredis()]],
    ['a URL as subscriber', () => [mockRedis(), { subscriber: URL }]],
    ['options as subscriber', () => [mockRedis(), { subscriber: { url: URL, password: PASSWORD } }]],
    ['options of a client among those of the registry', () => [mockRedis(), { url: URL, password: PASSWORD }]],
    ['a password as an unknown option', () => [mockRedis(), { password: PASSWORD }]],
  ])('%s: no message quotes its URL or its password', (_name, argumentsOf) => {
    const error = refusal(...argumentsOf());
    expect(error).toBeInstanceOf(TypeError);
    expect(`${error.message}\n${error.stack}`).not.toContain(PASSWORD);
    expect(error.message).not.toContain('redis.internal');
  });
});
