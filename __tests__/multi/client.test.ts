import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import type { Lease, RedisLock, RedisLockRegistry } from '../../lib';
import { SPRING_SCRIPTS } from '../../lib/kinds/spring/kind';
import { ROOT } from '../package/readme/pages';
import { redis6Client } from '../support/client-kinds';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { callsOf } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';
import { multiContract } from './multi-contract';

// Other types and clients: `other-clients.test.ts`.
multiContract('fair', redis6Client);

it('The signal of a lease of many keys causes no warning of Node about too many listeners', async () => {
  // In a process of its own: Node warns outside of the sandbox of a test.
  const program = `
    const { InMemoryLockRegistry } = require('${join(ROOT, 'lib/testing')}');
    const keys = Array.from({ length: 200 }, (_, i) => 'key ' + i);
    new InMemoryLockRegistry().multi(keys).run(({ signal }) => console.log(signal.aborted));`;
  const args = ['-r', require.resolve('esbuild-register'), '-e', program];
  expect(await promisify(execFile)(process.execPath, args, { cwd: ROOT })).toEqual({ stdout: 'false\n', stderr: '' });
});

describePrivate('A lock of several keys that one server is known to have', () => {
  const redis = PrivateRedis.install();

  /** Releases of many keys show that all keys are on one server, and load the scripts. */
  async function learnsWhereKeysAre(registry: RedisLockRegistry): Promise<void> {
    const many = registry.multi(Array.from({ length: 25 }, (_, i) => `key ${i}`));
    for (let i = 0; i < 2; i++) await many.run(() => undefined);
  }

  it.each(LOCK_TYPES)(
    'A lock of several keys that one server is known to have costs one command, and one to give it back: %s',
    async (lockType) => {
      const { registry } = createRegistry(await redis.connect(), { lockType });
      await learnsWhereKeysAre(registry);
      const commands = () => callsOf(redis.admin, 'evalsha');
      const before = await commands();
      const lease = await registry.multi(['a', 'b', 'c', 'd']).lock();
      expect((await commands()) - before).toBe(1);
      await lease.unlock();
      expect((await commands()) - before).toBe(2);
    },
  );

  // That of Redisson's fair lock keeps its positions, in order.
  it.each(LOCK_TYPES.filter((type) => type !== 'redisson-fair'))(
    'A lock of several keys that one server is known to have touches none while one is taken: %s',
    async (lockType) => {
      const registryKey = uniqueKey('multi');
      const { registry } = createRegistry(await redis.connect(), { lockType, registryKey, fencing: true });
      const { registry: other } = createRegistry(await redis.connect(), { lockType, registryKey });
      await learnsWhereKeysAre(registry);
      const taken = await other.obtain('b').lock();
      const multi = registry.multi(['a', 'b', 'c']);
      expect(await multi.tryLock()).toBeNull();
      const waiting = multi.lock();
      await until(() => registry.obtain('b').passing.waiting > 0);
      // Their counters of fencing tokens would be there.
      const isTouched = async () => (await redis.admin.keys(`*${registryKey}:[ac]*`)).length > 0;
      expect(await isTouched()).toBe(false);
      // Nobody waits for a call that waits.
      for (const key of ['a', 'c']) await (await other.obtain(key).lock({ waitTime: 5_000 })).unlock();
      await taken.unlock();
      const lease = await waiting;
      expect([...lease.fencingTokens.keys()]).toEqual(['a', 'b', 'c']);
      await lease.unlock();
    },
  );

  it.each(LOCK_TYPES)(
    'A lock of several keys that one server is known to have is granted though others see to it that they are never free at once: %s',
    async (lockType) => {
      const registryKey = uniqueKey('multi');
      const { registry } = createRegistry(await redis.connect(), { lockType, registryKey, idleBetweenTries: 20 });
      const { registry: other } = createRegistry(await redis.connect(), { lockType, registryKey });
      await learnsWhereKeysAre(registry);
      const abort = new AbortController();
      const { signal } = abort;
      const [a, b] = ['a', 'b'].map((key) => other.obtain(key)) as [RedisLock, RedisLock];
      const overtakes = async (): Promise<void> => {
        for (let first: Lease | null = null; !signal.aborted; ) {
          first ??= await a.lock({ signal });
          const second = await b.lock({ signal });
          await first.unlock();
          // Who waits for this one alone gets it.
          await new Promise((resolve) => setTimeout(resolve, 10));
          first = await a.tryLock();
          await second.unlock();
        }
      };
      const overtaking = overtakes().catch(() => undefined);
      await until(async () => (await other.obtain('b').inspect()).held);
      const lease = await registry.multi(['a', 'b']).lock({ waitTime: 20_000 });
      await lease.unlock();
      abort.abort();
      await overtaking;
    },
  );

  it('A lock of several keys that one server is known to have is granted where a queue is left of waiters that are gone', async () => {
    const { registry, nameOf } = createRegistry(await redis.connect(), { lockType: 'fair' });
    await learnsWhereKeysAre(registry);
    await redis.admin.hSet(`{${nameOf('a')}}:tickets`, 'gone', '1:60000:message');
    const lease = await registry.multi(['a', 'b']).tryLock();
    expect(lease).not.toBeNull();
    await lease?.unlock();
  });

  it('A lock of several keys that one server is known to have is granted once more when its client repeats the command, also beside a key that is refused', async () => {
    const names = ['a', 'b', 'c', 'd'].map((key) => uniqueKey(key));
    const { allOrNone } = SPRING_SCRIPTS.ACQUIRE;
    const ask = (owners: string[]) =>
      redis.admin.eval(
        allOrNone.source,
        allOrNone.options(names.map((name, i) => ({ keys: [name], arguments: [owners[i] ?? '', '60000'] }))),
      );
    for (let i = 0; i < 2; i++) expect(await ask(['1', '2', '3', '4'])).toEqual([1, 1, 1, 1]);
    await redis.admin.del([names[0] ?? '', names[2] ?? '']);
    await redis.admin.persist(names[1] ?? '');
    expect(await ask(['5', '6', '7', '4'])).toEqual([[], [-1, '2'], [], 1]);
    expect(await redis.admin.exists([names[0] ?? '', names[2] ?? ''])).toBe(0);
  });
});
