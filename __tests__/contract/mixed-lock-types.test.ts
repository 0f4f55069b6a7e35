import { beforeEach, expect, it } from '@jest/globals';
import { type LockType, typesOf } from '../../lib/api/lock-types';
import { Oracle } from '../support/oracle';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';

/** They write the same string key. */
const lockTypes = typesOf('spring');
const pairs = lockTypes.flatMap((one) =>
  lockTypes.filter((other) => other !== one).map((other) => [one, other] as const),
);

describeReal('Locks of different types on one name', () => {
  let client: TestClient;
  let registryKey: string;

  beforeEach(async () => {
    client ??= await createRealClient();
    registryKey = uniqueKey('mixed');
  });

  const registryOf = (lockType: LockType, expireAfter = 60_000) =>
    createRegistry(client, { registryKey, lockType, expireAfter }).registry;

  it('Locks of different types on one name exclude each other, so that a rolling change of type is safe (P13)', async () => {
    const types = lockTypes.map((lockType) => registryOf(lockType, 3_000));
    const oracle = new Oracle(await createRealClient());
    await Promise.all(
      types.flatMap((registry) =>
        Array.from({ length: 20 }, () => registry.run('key', () => oracle.section(() => undefined))),
      ),
    );
    expect(oracle.entered).toBe(20 * lockTypes.length);
    expect(oracle.violations).toEqual([]);
  });

  it.each(pairs)(
    'Locks of different types on one name notify each other of a release: %s releases, %s waits',
    async (holding, waiting) => {
      const lease = await registryOf(holding).obtain('key').lock();
      const lock = registryOf(waiting).obtain('key');
      const next = lock.lock({ waitTime: 4_000 });
      // It has made an attempt, and has subscribed if its type does.
      expect(await registryOf(waiting).obtain('key').tryLock({ waitTime: 400 })).toBeNull();
      await lease.unlock();
      await (await next).unlock();
    },
  );
});
