import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { Activity } from '../../lib/dashboard/activity';
import { InMemoryLockRegistry } from '../../lib/testing';

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
