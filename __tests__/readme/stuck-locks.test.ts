import { beforeEach, expect, it } from '@jest/globals';
import { LockLostError, type LockType } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { KEY, REGISTRY_KEY } from './contention';
import { codeSpans, readPage, tableBelow } from './pages';

const [, SECTION = ''] = readPage('docs/operations.md').split(/^## Stuck locks$/m);

/** The commands of the section, as words. */
const COMMANDS = [...SECTION.matchAll(/^redis-cli ([^#\n]*)/gm)].map(([, line = '']) => line.trim().split(' '));

const LOCK_TYPES = tableBelow('docs/operations.md', 'ACL rules').flatMap(([cell = '']) =>
  codeSpans(cell),
) as LockType[];

describePrivate('A stuck lock, as docs/operations.md has it', () => {
  const redis = PrivateRedis.install();
  beforeEach(async () => {
    await redis.admin.flushAll();
  });

  const registry = (lockType: LockType) =>
    createRegistry(redis.admin, { registryKey: REGISTRY_KEY, lockType }).registry;

  async function carryOut(command: string): Promise<unknown> {
    const words = COMMANDS.find(([name]) => name === command);
    if (words === undefined) throw new Error(`The page does not show ${command}`);
    return redis.admin.sendCommand(words);
  }

  it('is inspected by commands that Redis knows, on keys of the right type', async () => {
    await registry('fair').obtain(KEY).lock();
    expect(await carryOut('GET')).toMatch(new RegExp(`^.+:${process.pid}:[\\w-]{22}:\\d+$`));
    expect(await carryOut('PTTL')).toBeGreaterThan(0);
    expect(await carryOut('ZCARD')).toBe(0);
    expect(await carryOut('LLEN')).toBe(0);
    await redis.admin.flushAll();
    await registry('redisson').obtain(KEY).lock();
    expect(Object.keys((await carryOut('HGETALL')) as object)).toHaveLength(1);
  });

  it.each(LOCK_TYPES)('(%s) is free after DEL, and its holder learns of the loss', async (lockType) => {
    const held = await registry(lockType).obtain(KEY).lock({ ttl: 3_000, renew: true });
    const others = registry(lockType);
    expect(await others.obtain(KEY).tryLock()).toBeNull();
    expect(await carryOut('DEL')).toBe(1);
    const next = await others.obtain(KEY).lock({ waitTime: 10_000 });
    if (!held.signal.aborted) {
      await new Promise((resolve) => held.signal.addEventListener('abort', resolve, { once: true }));
    }
    expect(held.signal.reason).toBeInstanceOf(LockLostError);
    next.assertHeld();
    await next.unlock();
  });
});
