import { expect, it } from '@jest/globals';
import { LockLostError, NotLockOwnerError } from '../../../lib';
import type { LockFixture } from '../lock-fixture';

const INCREMENT = "return redis.call('INCR', KEYS[1])";

export function evaluating(fixture: LockFixture): void {
  // On a cluster, the keys of a script share the slot of the lock.
  const keyWithTag = () => `{${fixture.registryKey}}`;
  const counter = () => `${keyWithTag()}:counter`;

  it('lease.eval runs a script under the lock, with the KEYS and ARGV of the caller', async () => {
    const registry = fixture.registry();
    await registry.run(keyWithTag(), async (lease) => {
      const options = { keys: [counter(), `${counter()}:2`], arguments: ['a', 'b', 'c'] };
      const script = `local function last(list) return list[#list] end
return { #KEYS, last(KEYS), #ARGV, last(ARGV), KEYS[3] == nil and ARGV[4] == nil and 1 or 0 } -- a comment at the end`;
      expect(await lease.eval(script, options)).toEqual([2, `${counter()}:2`, 3, 'c', 1]);
      expect(await lease.eval('return #KEYS + #ARGV')).toBe(0);
      expect(await lease.eval(INCREMENT, { keys: [counter()] })).toBe(1);
      await fixture.admin.forgetScripts();
      expect(await lease.eval(INCREMENT, { keys: [counter()] })).toBe(2);
      await registry.run(keyWithTag(), async (nested) => {
        expect(await nested.eval(INCREMENT, { keys: [counter()] })).toBe(3);
      });
      await fixture.admin.del(counter());
    });
  });

  it('lease.eval does nothing once the lock has another owner, or is gone, though the lease has not learned it', async () => {
    const registry = fixture.registry();
    const name = fixture.nameOf(keyWithTag());
    const states = [
      { reason: 'expired', change: () => fixture.admin.del(name) },
      { reason: 'stolen', change: () => fixture.admin.set(name, 'somebody else', { PX: 60_000 }) },
      { reason: 'expired', change: () => fixture.otherRegistry().obtain(keyWithTag()).forceUnlock() },
    ];
    for (const { reason, change } of states) {
      const lease = await registry.obtain(keyWithTag()).lock({ ttl: 60_000 });
      await change();
      const lost = await lease.eval(INCREMENT, { keys: [counter()] }).catch((error: unknown) => error);
      expect(lost).toBeInstanceOf(LockLostError);
      expect(lost).toMatchObject({ reason, key: keyWithTag() });
      expect(lease.signal.aborted).toBe(true);
      await fixture.admin.del(name);
      await lease[Symbol.asyncDispose]();
    }
    expect(await fixture.admin.exists(counter())).toBe(0);
  });

  it('lease.eval rejects after the unlock, without a command', async () => {
    const lease = await fixture.registry().obtain(keyWithTag()).lock();
    await lease.unlock();
    await expect(lease.eval(INCREMENT, { keys: [counter()] })).rejects.toBeInstanceOf(NotLockOwnerError);
    expect(await fixture.admin.exists(counter())).toBe(0);
  });
}
