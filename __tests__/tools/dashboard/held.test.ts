import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lease } from '../../../lib';
import { InMemoryLockRegistry } from '../../../lib/testing';
import { Activity } from '../../../lib/tools/dashboard/activity';

let activity: Activity;
let registry: InMemoryLockRegistry;

beforeEach(() => {
  activity = new Activity();
  registry = new InMemoryLockRegistry();
});

afterEach(() => activity.stop());

const ownerOf = async (lock: { inspect(): Promise<{ readonly owner: string | undefined }> }) =>
  (await lock.inspect()).owner as string;

describe('What this process holds', () => {
  it('is there until the last of the readers that share a hold has left', async () => {
    const { read } = registry.readWrite('page');
    const leases: Lease[] = [await read.lock(), await read.lock()];
    const owner = await ownerOf(read);
    const since = activity.held.get(owner)?.at;
    await leases.pop()?.unlock();
    expect(activity.held.get(owner)?.at).toBe(since);
    await leases.pop()?.unlock();
    expect(activity.held.size).toBe(0);
  });

  it('is there while a reader has it, though another one leaves that came before a second page was made', async () => {
    const { read } = registry.readWrite('page');
    const early = await read.lock();
    const second = new Activity();
    const late = await read.lock();
    await early.unlock();
    expect([activity.held.size, second.held.size]).toEqual([1, 1]);
    await late.unlock();
    expect([activity.held.size, second.held.size]).toEqual([0, 0]);
    second.stop();
  });

  it('is not there after a task that could not detach its lease', async () => {
    const impatient = new InMemoryLockRegistry({ commandTimeout: 20 });
    await impatient.run('report', async (lease) => {
      impatient.locks.goSilent();
      await expect(lease.detach()).rejects.toThrow('was not detached');
    });
    expect(activity.held.size).toBe(0);
  });

  it('is not there after a lease that was lost before its caller had it', async () => {
    const lost: boolean[] = [];
    for (let turns = 0; turns < 12; turns++) {
      const closed = new InMemoryLockRegistry({ onWarning: () => undefined });
      const locking = closed.obtain('key').lock();
      const isLost = locking.then(({ signal }) => signal.aborted).catch(() => false);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      await closed.close({ timeout: 0 });
      lost.push(await isLost);
    }
    expect(lost).toContain(true);
    expect(activity.held.size).toBe(0);
  });

  it('is each key of a lease of several, without those that it entered again', async () => {
    await registry.run('a', async () => {
      await registry.multi(['a', 'b']).run(async () => {
        for (const key of ['a', 'b']) expect(activity.held.has(await ownerOf(registry.obtain(key)))).toBe(true);
        expect(activity.held.size).toBe(2);
      });
      expect([...activity.held.keys()]).toEqual([await ownerOf(registry.obtain('a'))]);
    });
    expect(activity.held.size).toBe(0);
  });
});

describe('How long a lock is held usually', () => {
  it('is not known before three holds of it have ended, of this process or of others', async () => {
    const orders = new InMemoryLockRegistry({ registryKey: 'orders' });
    for (const _ of [1, 2]) await orders.run('key', () => undefined);
    const name = 'orders:key';
    expect(activity.holdTimes.usual(name)).toBeNull();
    activity.holdTimes.add(name, 0);
    expect(activity.holdTimes.usual(name)).not.toBeNull();
  });

  it('is hardly changed by one that was stuck, and follows the last twenty', () => {
    const { holdTimes } = activity;
    for (let i = 0; i < 20; i++) holdTimes.add('key', 100);
    expect(holdTimes.usual('key')).toBe(100);
    holdTimes.add('key', 3_600_000);
    expect(holdTimes.usual('key')).toBeLessThan(200);
    for (let i = 0; i < 100; i++) holdTimes.add('key', 5_000);
    expect(holdTimes.usual('key')).toBeGreaterThan(4_000);
  });

  it('is remembered of a bounded number of locks: those that were held last', () => {
    const { holdTimes } = activity;
    const hold = (lock: string) => {
      for (const ms of [1, 2, 3]) holdTimes.add(lock, ms);
    };
    for (let i = 0; i < 1_000; i++) hold(`key ${i}`);
    hold('key 0');
    hold('late');
    expect([0, 1, 2].map((i) => holdTimes.usual(`key ${i}`) !== null)).toEqual([true, false, true]);
    expect(holdTimes.usual('late')).toBe(2);
  });
});

describe('What changed', () => {
  const lines = () => [...activity.changes.values()].map(({ lock, what, by, times }) => [lock, what, by, times]);

  it('is one line for what happens several times within a second', () => {
    for (const at of [1_000, 1_400, 1_999, 2_000]) activity.note('acquired', 'a', 'web-1', undefined, at);
    activity.note('acquired', 'a', 'web-2', undefined, 1_500);
    activity.note('lost', 'a', 'web-1', 'expired', 1_500);
    expect(lines()).toEqual([
      ['a', 'acquired', 'web-1', 3],
      ['a', 'acquired', 'web-1', 1],
      ['a', 'acquired', 'web-2', 1],
      ['a', 'lost', 'web-1', 1],
    ]);
  });

  it('is kept of the last thousand', () => {
    for (let i = 0; i < 1_002; i++) activity.note('acquired', `key ${i}`, 'web-1');
    expect([lines().length, lines()[0]?.[0]]).toEqual([1_000, 'key 2']);
  });
});
