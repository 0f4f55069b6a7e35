import { expect, it } from '@jest/globals';
import { LockTimeoutError } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();

it.each([
  ['once its wait is over', 1_050, (locks: InMemoryLocks) => (locks.isSilent = true)],
  ['not at all, where it has asked before', 1_000, (locks: InMemoryLocks) => locks.goSilent()],
])('P1: a silent Redis is asked 50 ms long by a caller inside a run who else waits: %s', async (_, endsAt, silence) => {
  const locks = new InMemoryLocks();
  const [registry, other] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
  await other.obtain('theirs').lock();
  let error: unknown;
  const wait = () =>
    registry
      .run('theirs', () => undefined, { waitTime: 1_000 })
      .catch((reason) => {
        error = reason;
      });
  const outer = registry.run('ours', wait);
  await time.advance(990);
  silence(locks);
  await time.advance(endsAt - 991);
  expect(error).toBeUndefined();
  await time.advance(1);
  expect(error).toBeInstanceOf(LockTimeoutError);
  locks.comeBack();
  await outer;
  await Promise.all([registry, other].map((one) => one.close({ timeout: 0 })));
});
