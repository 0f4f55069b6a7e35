import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { type DistributedLock, LockLostError, type LockType, type RedisLockRegistry } from '../../../lib';
import { LOCK_TYPES } from '../../../lib/api/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { callsOf } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';
import { until, WAIT_LIMIT } from '../../support/until';
import { Contention, KEY, REGISTRY_KEY } from './contention';
import { codeSpans, readPage, tableBelow } from './pages';

const PAGE = 'docs/operations.md';
const ID = `[\\w.-]+[:/]${process.pid}[:/][\\w-]{22}`;

/** `spin`, `pub-sub` with `fencing` */
const typesIn = (cell = '') => cell.replaceAll('`', '').replace(' with fencing', '').split(', ');
const wordsIn = (cell = '') => codeSpans(cell).flatMap((span) => span.split(' '));

const KEYS = tableBelow(PAGE, 'Keys and channels').map(([types = '', name = '', kind = '']) => ({
  names: typesIn(types),
  onlyWithFencing: types.endsWith('with `fencing`'),
  row: { name: codeSpans(name)[0] as string, kind },
}));

const RULES = ['ACL rules', 'Semaphores and read/write locks']
  .flatMap((heading) => tableBelow(PAGE, heading))
  .map(([types, rules, withFencing]) => ({
    names: typesIn(types),
    rules: wordsIn(rules),
    withFencing: wordsIn(withFencing),
  }));

/** For shared locks: what only `inspect()` needs, and what `forceUnlock()` and `lease.eval` do. */
const OF_INSPECT = wordsIn(/`inspect\(\)` also needs .*/.exec(readPage(PAGE))?.[0]).filter((word) =>
  /^\+(?!type)/.test(word),
);

/** What node-redis needs to connect. It also sends its name by CLIENT, and goes on when that is denied. */
const OF_NODE_REDIS = ['+hello'];

interface Case {
  readonly name: string;
  readonly fencing: boolean;
  readonly lockType: LockType;
  readonly more?: readonly string[];
  readonly lockOf?: (registry: RedisLockRegistry) => DistributedLock;
}

const CASES: readonly Case[] = [
  ...LOCK_TYPES.flatMap((lockType) => [false, true].map((fencing) => ({ name: lockType, lockType, fencing }))),
  {
    ...{ name: 'semaphores', lockType: 'pub-sub', fencing: false, more: OF_INSPECT },
    lockOf: (registry) => registry.semaphore(KEY, { permits: 1 }),
  },
  {
    ...{ name: 'read/write locks', lockType: 'pub-sub', fencing: true, more: OF_INSPECT },
    lockOf: (registry) => registry.readWrite(KEY).write,
  },
];

/** A name of the table for a name that Redis has. */
function asInTheTable(name: string): string {
  return name.replace(new RegExp(`(?<=:)${ID}:\\d+`), '<owner>').replace(new RegExp(`(?<=:)${ID}`), '<id>');
}

/** No channel on which a registry hears itself: its name is said below the table. */
function isOfLock(channel: string): boolean {
  return !/:@[\da-f-]{36}$/.test(channel);
}

/** No mark of a forced unlock: its name is said below the table. */
function isOfHold(key: string): boolean {
  return !/:evals:forced:[\da-f-]{36}$/.test(key);
}

/** Makes a user with these rights and no others. */
async function permit(redis: PrivateRedis, username: string, rules: readonly string[]) {
  const all = ['on', '>secret', 'resetkeys', 'resetchannels', '-@all', ...OF_NODE_REDIS, ...rules];
  await redis.admin.sendCommand(['ACL', 'SETUSER', username, ...all]);
  await redis.admin.sendCommand(['ACL', 'LOG', 'RESET']);
  return { username, password: 'secret' };
}

/** What users were refused. */
async function denied(redis: PrivateRedis): Promise<string[]> {
  const entries = (await redis.admin.aclLog()).filter(({ object }) => !object.startsWith('client'));
  return entries.map(({ reason, object }) => `${reason} ${object}`);
}

interface NameInRedis {
  readonly name: string;
  readonly kind: string;
}

/** The names in Redis, as the table has them. */
async function namesIn(redis: PrivateRedis): Promise<NameInRedis[]> {
  const kinds: Record<string, string> = { zset: 'sorted set' };
  const keys = (await redis.admin.keys('*')).filter(isOfHold).map(async (name) => {
    const type = await redis.admin.type(name);
    const expiry = (await redis.admin.pTTL(name)) < 0 ? ', no' : ' with';
    return { name: asInTheTable(name), kind: `${kinds[type] ?? type}${expiry} expiry` };
  });
  const channels = new Set((await redis.admin.pubSubChannels('*')).filter(isOfLock).map(asInTheTable));
  return [...(await Promise.all(keys)), ...[...channels].map((name) => ({ name, kind: 'channel' }))];
}

/** The keys and channels that the page names for it. */
const rowsOf = ({ name, fencing }: Case): NameInRedis[] =>
  KEYS.filter(({ names, onlyWithFencing }) => names.includes(name) && (fencing || !onlyWithFencing)).map(
    ({ row }) => row,
  );

/** What Redis has while a lock is contended for by a user with the rights of the page, and what it says of these rights. */
async function contend(redis: PrivateRedis, one: Case) {
  const { name, fencing, lockType, more = [], lockOf } = one;
  const row = RULES.find(({ names }) => names.includes(name));
  const rules = [...(row?.rules ?? []), ...(fencing ? (row?.withFencing ?? []) : []), ...more];
  const user = await permit(redis, 'locks', rules);
  const contention = new Contention(redis, lockType, fencing, user, lockOf);
  let found: NameInRedis[] = [];
  try {
    await contention.run(async () => {
      // A waiter leaves its mark when it has waited for some time.
      const areThere = async () => {
        found = await namesIn(redis);
        return rowsOf(one).every((row) => found.some((seen) => seen.name === row.name));
      };
      await until(areThere, { within: WAIT_LIMIT }).catch(() => undefined);
    });
  } finally {
    await contention.close();
  }
  const unused = [];
  const isUnused = async (rule: string) => rule.startsWith('+') && (await callsOf(redis.admin, rule.slice(1))) === 0;
  for (const rule of rules) if (await isUnused(rule)) unused.push(rule);
  const { warnings } = contention;
  return { found, warnings, denied: await denied(redis), unused };
}

describePrivate(`${PAGE} under contention`, () => {
  const servers = new Map(CASES.map((one) => [one, PrivateRedis.install()]));
  let outcomes: Map<Case, ReturnType<typeof contend>>;

  // A case takes more than a second, most of which it waits: each has a server of its own, and they run at once.
  beforeAll(async () => {
    outcomes = new Map([...servers].map(([one, redis]) => [one, contend(redis, one)]));
    await Promise.allSettled(outcomes.values());
  });

  it.each(CASES)(
    `${PAGE} has the keys and channels of $name under contention, and the rights that are needed, with fencing: $fencing`,
    async (one) => {
      const { found = [], ...others } = (await outcomes.get(one)) ?? {};
      const byName = (a: NameInRedis, b: NameInRedis) => a.name.localeCompare(b.name);
      expect(found.sort(byName)).toEqual(rowsOf(one).sort(byName));
      expect(others).toEqual({ warnings: [], denied: [], unused: [] });
    },
  );
});

describePrivate(PAGE, () => {
  const redis = PrivateRedis.install();

  beforeEach(() => redis.admin.flushAll());

  it(`${PAGE} is about every type of lock, and no other`, () => {
    const all = new Set(CASES.map(({ name }) => name));
    for (const table of [KEYS, RULES]) expect(new Set(table.flatMap(({ names }) => names))).toEqual(all);
  });

  it(`${PAGE} has the names of a key with a hash tag, which share its slot`, async () => {
    const { registry } = createRegistry(redis.admin, { registryKey: REGISTRY_KEY, lockType: 'fair', fencing: true });
    const lease = await registry.obtain('{42}').lock();
    const names = await redis.admin.keys('*');
    expect(names.sort()).toEqual([`${REGISTRY_KEY}:{42}`, `{42}:fence:${REGISTRY_KEY}:{42}`].sort());
    await lease.unlock();
  });

  /** The rules for a lock type and `once`, where names have a hash tag. */
  const withTags = (rules: readonly string[]): string[] => {
    const [, ofTags] = /^- Names with hash tags: (.*)$/m.exec(readPage(PAGE)) ?? [];
    const [pattern = '', ...more] = wordsIn(ofTags).filter((word) => !word.startsWith('~redisson'));
    const companions = more.map((word) => (/^\w+$/.test(word) ? pattern.replace('fence', word) : word));
    const others = rules.map((rule) => rule.replace(':{orders', ':orders')).filter((rule) => !rule.includes('{orders'));
    return [...others, pattern, ...companions];
  };

  it.each([
    ...(['spin', 'pub-sub', 'redisson'] as const).map((lockType) => [lockType, KEY] as const),
    ...LOCK_TYPES.map((lockType) => [lockType, '{42}'] as const),
  ])(`${PAGE} has the rights of once and its lock, with %s and the key %s`, async (lockType, key) => {
    const [, ofOnce] = /^- `once` and `forget` also need(.*)$/m.exec(readPage(PAGE)) ?? [];
    const ofType = RULES.find(({ names }) => names.includes(lockType))?.rules ?? [];
    const rules = [...ofType, ...wordsIn(ofOnce).filter((word) => /^[~&+]/.test(word))];
    const user = await permit(redis, lockType + key, key === KEY ? rules : withTags(rules));
    const options = { registryKey: REGISTRY_KEY, lockType };
    const calls = [1, 2].map(async (i) => {
      const { registry, warnings } = createRegistry(await redis.connect(user), options);
      const result = await registry.once(key, () => `by ${i}`, { keepFor: 60_000 });
      return { registry, result, warnings };
    });
    const [one, other] = await Promise.all(calls);
    expect(one?.result).toBe(other?.result);
    expect(await one?.registry.forget(key)).toBe(true);
    const lease = await one?.registry.obtain(key).lock();
    expect(await other?.registry.forget(key)).toBe(false);
    const next = other?.registry.run(key, () => undefined);
    await sleep(20);
    await lease?.unlock();
    await next;
    expect([await denied(redis), one?.warnings, other?.warnings]).toEqual([[], [], []]);
  });

  /** A command of the section about stuck locks. */
  async function carryOut(command: string): Promise<unknown> {
    const [, section = ''] = readPage(PAGE).split(/^## Stuck locks$/m);
    const [, line] = new RegExp(`^redis-cli (${command} [^#\\n]*)`, 'm').exec(section) ?? [];
    if (line === undefined) throw new Error(`The page does not show ${command}`);
    return redis.admin.sendCommand(line.trim().split(' '));
  }

  const registry = (lockType: LockType) =>
    createRegistry(redis.admin, { registryKey: REGISTRY_KEY, lockType }).registry;

  it(`${PAGE} has commands to inspect a stuck lock that Redis knows, on keys of the right type`, async () => {
    await registry('fair').obtain(KEY).lock();
    expect(await carryOut('GET')).toMatch(new RegExp(`^.+:${process.pid}:[\\w-]{22}:\\d+$`));
    expect(await carryOut('PTTL')).toBeGreaterThan(0);
    expect(await carryOut('ZCARD')).toBe(0);
    expect(await carryOut('LLEN')).toBe(0);
    await redis.admin.flushAll();
    await registry('redisson').obtain(KEY).lock();
    expect(Object.keys((await carryOut('HGETALL')) as object)).toHaveLength(1);
  });

  it.each(LOCK_TYPES)(
    `${PAGE} has the command that frees a stuck lock, whose holder learns of the loss: %s`,
    async (lockType) => {
      const held = await registry(lockType).obtain(KEY).lock({ ttl: 1_500, renew: true });
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
    },
  );
});
