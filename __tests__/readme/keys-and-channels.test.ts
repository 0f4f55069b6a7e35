import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { LockType } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { Contention, REGISTRY_KEY } from './contention';
import { codeSpans, tableBelow } from './pages';

const ID = `[\\w.-]+[:/]${process.pid}[:/][\\w-]{22}`;

const ROWS = tableBelow('docs/operations.md', 'Keys and channels').map(([types = '', name = '', kind = '']) => ({
  lockTypes: codeSpans(types).filter((word) => word !== 'fencing') as LockType[],
  onlyWithFencing: types.includes('fencing'),
  name: codeSpans(name)[0] as string,
  kind,
}));

const CASES = [...new Set(ROWS.flatMap(({ lockTypes }) => lockTypes))].flatMap((lockType) =>
  [false, true].map((fencing) => ({ lockType, fencing })),
);

/** A name of the table for a name that Redis has. */
function asInTheTable(name: string): string {
  return name.replace(new RegExp(`(?<=:)${ID}:\\d+`), '<owner>').replace(new RegExp(`(?<=:)${ID}`), '<id>');
}

describePrivate('The keys and channels in docs/operations.md', () => {
  const redis = PrivateRedis.install();
  let contention: Contention | undefined;

  beforeEach(async () => {
    await redis.admin.flushAll();
  });

  afterEach(async () => {
    await contention?.close();
  });

  async function seen(): Promise<{ name: string; kind: string }[]> {
    const kinds: Record<string, string> = { zset: 'sorted set' };
    const keys = await Promise.all(
      (await redis.admin.keys('*')).map(async (name) => {
        const type = await redis.admin.type(name);
        const expiry = (await redis.admin.pTTL(name)) < 0 ? ', no' : ' with';
        return { name: asInTheTable(name), kind: `${kinds[type] ?? type}${expiry} expiry` };
      }),
    );
    const channels = new Set((await redis.admin.pubSubChannels('*')).map(asInTheTable));
    return [...keys, ...[...channels].map((name) => ({ name, kind: 'channel' }))];
  }

  it.each(CASES)('are those of a $lockType lock under contention, with fencing: $fencing', async (aCase) => {
    const { lockType, fencing } = aCase;
    const expected = ROWS.filter((row) => row.lockTypes.includes(lockType) && (fencing || !row.onlyWithFencing));
    contention = new Contention(redis, lockType, fencing);
    let found: { name: string; kind: string }[] = [];
    await contention.run(async () => {
      found = await seen();
    });
    const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
    expect(found.sort(byName)).toEqual(expected.map(({ name, kind }) => ({ name, kind })).sort(byName));
  });

  it('of a name with a hash tag share its slot', async () => {
    contention = new Contention(redis, 'fair', true);
    const registry = await contention.registry();
    const lease = await registry.obtain('{42}').lock();
    const names = await redis.admin.keys('*');
    expect(names.sort()).toEqual([`${REGISTRY_KEY}:{42}`, `{42}:fence:${REGISTRY_KEY}:{42}`].sort());
    await lease.unlock();
  });
});
