import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { redis5Client, redis6Client, redis6Pool } from '../support/client-kinds';
import { Oracle } from '../support/oracle';
import { createRealClient, describeReal, uniqueKey } from '../support/redis';

describeReal('Locks through clients of different kinds', () => {
  it('exclude each other', async () => {
    const opened = await Promise.all([redis6Client, redis6Pool, redis5Client].map((kind) => kind.open()));
    const registryKey = uniqueKey('mixed');
    const registries = opened.map(
      ({ clients }) => new RedisLockRegistry(clients[0], { registryKey, idleBetweenTries: 5, fencing: true }),
    );
    const oracle = new Oracle(await createRealClient());
    await Promise.all(
      registries.flatMap((registry) =>
        Array.from({ length: 20 }, () =>
          registry.run('key', (lease) => oracle.section(() => oracle.write(lease.fencingToken))),
        ),
      ),
    );
    expect(oracle.entered).toBe(60);
    expect(oracle.violations).toEqual([]);
    await Promise.all(registries.map((registry) => registry.close()));
    await Promise.all(opened.map((one) => one.close()));
  });
});
