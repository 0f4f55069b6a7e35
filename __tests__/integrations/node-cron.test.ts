import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import cron, { type RunCoordinator } from 'node-cron';
import { CannotAcquireLockError, LockLostError, type LockRegistry } from '../../lib';
import { runCoordinator } from '../../lib/integrations/node-cron';
import { InMemoryLocks } from '../../lib/testing';
import { pairsInMemory, SharedFixture } from '../kinds/shared/shared-fixture';
import { untilCollected } from '../support/collected';
import { describeReal } from '../support/redis';
import { until } from '../support/until';

/** ms for which a run is kept from others. */
const LEASE = 300;

const machines = pairsInMemory({ commandTimeout: 50, onWarning: () => undefined });

/** Coordinators of two machines. */
const coordinators = (locks = new InMemoryLocks()) =>
  machines(locks).map((registry) => runCoordinator(registry)) as [RunCoordinator, RunCoordinator];

it('A run coordinator lets one machine run, and keeps the run from others for the lease, also when it was shorter', async () => {
  const [one, other] = coordinators();
  const began = performance.now();
  expect(await one.shouldRun('task:1', LEASE)).toBe(true);
  expect(await one.shouldRun('task:1', LEASE)).toBe(false);
  expect(await other.shouldRun('task:2', LEASE)).toBe(true);
  await one.onComplete?.('task:1');
  expect(await other.shouldRun('task:1', LEASE)).toBe(false);
  await until(() => other.shouldRun('task:1', LEASE) as Promise<boolean>);
  expect(performance.now() - began).toBeGreaterThanOrEqual(LEASE - 5);
});

it('A run coordinator keeps a run from others that is longer than the lease, until it is complete', async () => {
  const [one, other] = coordinators();
  await one.shouldRun('task', LEASE);
  await sleep(2 * LEASE);
  expect(await other.shouldRun('task', LEASE)).toBe(false);
  await one.onComplete?.('task');
  expect(await other.shouldRun('task', LEASE)).toBe(true);
});

it('A run coordinator says after a run that its lock was lost, and before it that Redis cannot be asked', async () => {
  const locks = new InMemoryLocks();
  const [one, other] = coordinators(locks);
  await one.shouldRun('task', LEASE);
  locks.steal('task');
  await expect(one.onComplete?.('task')).rejects.toThrow(LockLostError);
  // A run that it has not let begin.
  await other.onComplete?.('task');
  locks.goSilent();
  await expect(one.shouldRun('another', LEASE)).rejects.toThrow(CannotAcquireLockError);
});

it('A run coordinator lets no run begin whose registry is closed before it is answered, and does not fail', async () => {
  const locks = new InMemoryLocks();
  const registries = machines(locks);
  const [one, other] = registries.map((registry) => runCoordinator(registry)) as [RunCoordinator, RunCoordinator];
  locks.goSilent();
  const asked = one.shouldRun('task', LEASE);
  await registries[0].close({ timeout: 0 });
  expect(await asked).toBe(false);
  expect(await one.shouldRun('task', LEASE)).toBe(false);
  locks.comeBack();
  expect(await other.shouldRun('task', LEASE)).toBe(true);
});

it('A run coordinator keeps nothing of a run that is over', async () => {
  let made: WeakRef<object> | undefined;
  const tryLock = async () => {
    const lease = { unlock: async () => undefined };
    made = new WeakRef(lease);
    return lease;
  };
  const coordinator = runCoordinator({ obtain: () => ({ tryLock }) } as unknown as LockRegistry);
  expect(await coordinator.shouldRun('task:1', LEASE)).toBe(true);
  await coordinator.onComplete('task:1');
  await untilCollected(made as unknown as WeakRef<object>);
});

describeReal('node-cron with run coordinators', () => {
  const fixture = SharedFixture.install();

  it('A distributed task of node-cron runs once for each second, on one of three machines', async () => {
    const runs: number[] = [];
    const tasks = await Promise.all(
      ['a', 'b', 'c'].map(async () => {
        const coordinator = runCoordinator(await fixture.registry());
        const run = ({ date }: { date: Date }) => void runs.push(date.getTime());
        return cron.schedule('* * * * * *', run, { name: 'task', distributed: true, runCoordinator: coordinator });
      }),
    );
    await until(() => runs.length >= 3, { within: 30_000 });
    await Promise.all(tasks.map((task) => task.destroy()));
    expect(new Set(runs).size).toBe(runs.length);
    const [key] = await fixture.keys();
    expect(key).toMatch(/:task:\d{4}-\d\d-\d\dT/);
  });
});
