import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { LockWarning } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { until } from '../support/until';

it('LONG_HOLD is about the process that has adopted a lease, and no more about the one that has detached it', async () => {
  const locks = new InMemoryLocks();
  const open = () => {
    const warnings: LockWarning[] = [];
    const onWarning = (warning: LockWarning) => warnings.push(warning);
    return { warnings, registry: new InMemoryLockRegistry({ locks, warnHeldAfter: 40, onWarning }) };
  };
  const [one, other] = [open(), open()];
  const text = await (await one.registry.obtain('key').lock()).detach();
  await pause(100);
  expect(one.warnings).toEqual([]);
  const lease = await other.registry.adopt(text);
  await until(() => other.warnings.length > 0);
  expect(other.warnings[0]).toMatchObject({ code: 'LONG_HOLD', key: 'key' });
  await lease.unlock();
  expect(one.warnings).toEqual([]);
});
