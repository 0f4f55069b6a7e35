import { afterEach, expect, it } from '@jest/globals';
import { CannotAcquireLockError, NotReplicatedError } from '../../../lib';
import { ReplicaFixture } from '../../redis/replicas/replica-fixture';
import { describePrivate } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';

describePrivate('A lease that travels, with minReplicas', () => {
  const fixture = ReplicaFixture.install(1);

  afterEach(() => fixture.follow());

  it.each(['spin', 'fair', 'redisson'] as const)(
    'An adoption that replicas do not have is none, stays as it is, and is one when it is repeated: %s',
    async (lockType) => {
      const options = { lockType, registryKey: uniqueKey(), minReplicas: 1, fencing: true };
      const one = (await fixture.registry({ ...options, replicaTimeout: 2_000 })).registry;
      const other = (await fixture.registry({ ...options, replicaTimeout: 1_000 })).registry;
      const text = await one.run('key', (lease) => lease.detach());
      fixture.holdUp();
      const error = await other.adopt(text).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(CannotAcquireLockError);
      expect((error as Error).cause).toBeInstanceOf(NotReplicatedError);
      // Nobody else gets it meanwhile.
      expect(await one.obtain('key').inspect()).toMatchObject({ held: true, isOurs: false });
      await fixture.follow();
      const lease = await other.adopt(text);
      expect(await other.obtain('key').inspect()).toMatchObject({ isOurs: true, fencingToken: lease.fencingToken });
      await lease.unlock();
      expect(await one.obtain('key').inspect()).toMatchObject({ held: false });
    },
  );
});
