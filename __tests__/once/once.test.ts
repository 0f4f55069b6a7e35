import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { SharedFixture } from '../kinds/shared/shared-fixture';
import { DISTINCT_TYPES } from '../support/lock-types';
import { messagesOn } from '../support/messages';
import { createRealClient, describeReal } from '../support/redis';
import { until } from '../support/until';
import { gated, KEPT, onceContract } from './once-contract';

describeReal.each(DISTINCT_TYPES)('Once with locks of type %s', (lockType) => {
  const fixture = SharedFixture.install();
  onceContract(() => fixture.pair({ lockType, fairLockWaitTimeout: 1_000 }));

  it('A result of once that is there costs one command', async () => {
    const [one, other] = await fixture.pair({ lockType });
    await one.once('key', () => 1, KEPT);
    await other.once('key', () => 1, KEPT); // The server knows the script now.
    const requests = await fixture.requestsOf(async () => expect(await other.once('key', () => 2, KEPT)).toBe(1));
    expect(requests).toEqual(['EVALSHA']);
  });

  it('Waiters of once in other processes have the result when it is there, while the lock is still held', async () => {
    const registries = await Promise.all([1, 2, 3, 4].map(() => fixture.registry({ lockType })));
    const { task, open } = gated('result');
    const first = registries[0]?.once('key', task, KEPT);
    await until(() => task.mock.calls.length > 0);
    const waiting = registries.slice(1).map((registry) => registry.once('key', task, KEPT));
    await sleep(50);
    // As the script of `once` does, but the lock stays held.
    const name = `{${fixture.registryKey}:key}:once`;
    await fixture.client.set(name, '"early"', { expiration: { type: 'PX', value: 60_000 } });
    await fixture.client.publish(name, '');
    expect(await Promise.all(waiting)).toEqual(['early', 'early', 'early']);
    open();
    expect(await first).toBe('result');
  });

  it('A result of once whose key is of another type is named in the error, and can be forgotten', async () => {
    const [one] = await fixture.pair({ lockType });
    const name = `{${fixture.registryKey}:key}:once`;
    await fixture.client.hSet(name, 'a', 'b');
    const error = await one.once('key', () => 1, KEPT).catch((reason: Error) => reason);
    expect(error).toMatchObject({
      name: 'CannotAcquireLockError',
      message: expect.stringContaining('The result of "key" could not be read: WRONGTYPE It is a lock of type'),
    });
    expect(String(error)).toContain(`used as a result of once, in "${name}", here. forget("key") removes it`);
    expect(await one.forget('key')).toBe(true);
    expect(await one.once('key', () => 1, KEPT)).toBe(1);
  });

  it('A mark of forget() is left only while the lock is held, expires, and is gone when the next result is kept', async () => {
    const [one, other] = await fixture.pair({ lockType });
    const name = `{${fixture.registryKey}:key}:evals:forgotten`;
    await one.forget('key');
    expect(await fixture.client.exists(name)).toBe(0);
    await one.run('key', () => other.forget('key'));
    expect(await fixture.client.pTTL(name)).toBeGreaterThan(80_000_000);
    expect(await one.once('key', () => other.forget('key').then(() => 'forgotten'), KEPT)).toBe('forgotten');
    expect(await fixture.client.exists(name)).toBe(1);
    expect(await one.once('key', () => 'kept', KEPT)).toBe('kept');
    expect(await fixture.client.exists(name)).toBe(0);
  });

  it('A key with a result of once is no lock, has an expiry, and is told to those that wait', async () => {
    const [one] = await fixture.pair({ lockType });
    const name = `{${fixture.registryKey}:key}:once`;
    const messages = await messagesOn(createRealClient(), name);
    await one.once('key', () => 1, KEPT);
    await until(() => messages.length > 0);
    const left = await fixture.keys();
    expect(left).toContain(name);
    for (const key of left) expect(await fixture.client.pTTL(key)).toBeGreaterThan(0);
    const listed = [];
    for await (const { key } of one.list()) listed.push(key);
    expect(listed).toEqual([]);
  });
});
