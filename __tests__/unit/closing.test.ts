import { beforeEach, expect, it } from '@jest/globals';
import type { LockWarning } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';

let warnings: LockWarning[];
let registry: InMemoryLockRegistry;

beforeEach(() => {
  warnings = [];
  registry = new InMemoryLockRegistry({ lockType: 'spin', onWarning: (warning) => void warnings.push(warning) });
});

it('A registry that is closed while leases are held warns once of all leases that it gave up: how many, of which types, and some of their keys', async () => {
  const { read } = registry.readWrite('prices');
  const semaphore = registry.semaphore('render', { permits: 3 });
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const unlocked = [await registry.obtain('unlocked').lock(), await semaphore.lock(), await read.lock()];
  const lost = await registry.obtain('lost').lock();
  registry.locks.expire('lost');
  await lost.renew().catch(() => undefined);
  await registry.multi(keys).lock();
  for (const lock of [semaphore, semaphore, read, read]) await lock.lock();
  for (const lease of unlocked) await lease.unlock();

  await Promise.all([registry.close({ timeout: 0 }), registry.close()]);
  await registry.close();
  const types = '5 of type spin ("a", "b", "c", …), 2 of type read ("prices"), 2 of type semaphore ("render")';
  const message = `Registry "test" was closed, and gave up 9 leases after 0 ms: ${types}`;
  expect(warnings).toEqual([{ code: 'CLOSED_WHILE_HELD', message }]);
});

it('A registry that is closed while leases are held does not count a lease that is unlocked by a listener of the loss of another one', async () => {
  const [first, second] = [await registry.obtain('first').lock(), await registry.obtain('second').lock()];
  first.signal.addEventListener('abort', () => void second.unlock());
  await registry.close({ timeout: 0 });
  const message = 'Registry "test" was closed, and gave up a lease after 0 ms: 1 of type spin ("first")';
  expect(warnings).toEqual([{ code: 'CLOSED_WHILE_HELD', message }]);
});
