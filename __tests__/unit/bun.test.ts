import { expect, it } from '@jest/globals';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { type BunRedis, fromBun } from '../../lib/bun';

/** Bun's client under Bun: `npm run test:bun`. Here: what is refused. */
class RedisClientOfBun implements BunRedis {
  readonly connected = true;
  #error: Error;

  constructor(error: Error) {
    this.#error = error;
  }

  async send(): Promise<unknown> {
    throw this.#error;
  }

  async evalsha(): Promise<unknown> {
    throw this.#error;
  }

  async duplicate(): Promise<unknown> {
    return this;
  }

  async subscribe(): Promise<void> {}
  async unsubscribe(): Promise<void> {}
  close(): void {}
}

const answer = (message: string) => Object.assign(new Error(message), { code: 'ERR_REDIS_SERVER_ERROR' });

it("A client of Bun's is refused as it is, and the error names the adapter", () => {
  const redis = new RedisClientOfBun(answer('ERR')) as unknown as RedisClient;
  expect(() => new RedisLockRegistry(redis, { registryKey: 'orders' })).toThrow(/fromBun.*redis-lock-registry\/bun/);
});

it('The adapter refuses what is no client of Bun', () => {
  expect(() => fromBun({ send: () => undefined } as never)).toThrow(
    /^Expected a RedisClient of Bun, got an options object/,
  );
});

it('minReplicas is refused', () => {
  const client = fromBun(new RedisClientOfBun(answer('ERR')));
  expect(() => new RedisLockRegistry(client, { registryKey: 'orders', minReplicas: 1 })).toThrow(/minReplicas/);
});

it('A cluster is refused by its first redirection, at once', async () => {
  const client = fromBun(new RedisClientOfBun(answer('MOVED 8000 127.0.0.1:7001')));
  const registry = new RedisLockRegistry(client, { registryKey: 'orders' });
  const refused = registry.obtain('42').lock();
  await expect(refused).rejects.toMatchObject({
    code: 'ERR_CANNOT_ACQUIRE_LOCK',
    cause: { message: "ERR Bun's RedisClient cannot work with a cluster: MOVED 8000 127.0.0.1:7001" },
  });
  await registry.close();
});

it('Sharded channels are refused', async () => {
  const client = fromBun(new RedisClientOfBun(answer('ERR')));
  await expect(client.sSubscribe?.('channel', () => undefined)).rejects.toThrow(/has no sharded pub\/sub/);
});
