import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DistributedLock, type Lease, LockError, RedisLockRegistry } from '../../../lib';
import { FakeClock } from '../../support/fake-clock';
import { mockRedis, silence } from '../../support/mock-redis';
import { codeSpans, readPage, tableBelow } from './pages';

const PAGE = 'docs/operations.md';

/** ms, of the options that the table names. */
const TIMES = { commandTimeout: 800, unavailableAfter: 1_600, timeout: 300 };

/** The calls of the table that reject, each with its error and the option that says after how long. */
const ROWS = tableBelow(PAGE, 'When Redis is down').flatMap(([calls = '', error = '', after = '']) => {
  const [name = ''] = codeSpans(error);
  const time = codeSpans(after)[0] as keyof typeof TIMES;
  const names = calls.startsWith('the end') ? [] : codeSpans(calls).filter((call) => call !== 'multi');
  return name === '' ? [] : names.map((call) => ({ call, error: name, time }));
});

const FOR_CALLS = ['renew', 'eval', 'unlock', 'detach'];

/** The calls of the table. `held`: a lease of its own for each of `FOR_CALLS`. */
function callsOf(registry: RedisLockRegistry, held: (call: string) => Lease, passport: string) {
  /** A lock that nobody has. */
  const free = (call: string): DistributedLock => registry.obtain(`free:${call}`);
  return {
    lock: () => free('lock').lock(),
    run: () => free('run').run(() => undefined),
    tryLock: () => free('tryLock').tryLock(),
    tryRun: () => free('tryRun').tryRun(() => undefined),
    once: () => registry.once('once', () => 1, { keepFor: 1_000 }),
    forget: () => registry.forget('forget'),
    renew: () => held('renew').renew(),
    eval: () => held('eval').eval('return 1'),
    unlock: () => held('unlock').unlock(),
    detach: () => held('detach').detach(),
    adopt: () => registry.adopt(passport),
    inspect: () => free('inspect').inspect(),
    ask: () => free('ask').ask(),
    forceUnlock: () => free('forceUnlock').forceUnlock(),
    list: () => registry.list()[Symbol.asyncIterator]().next(),
  } satisfies Record<string, () => Promise<unknown>>;
}

/** The calls of the table, when what they need is held. */
async function preparedOn(registry: RedisLockRegistry) {
  const passport = await (await registry.obtain('adopt').lock()).detach();
  const leases = new Map<string, Lease>();
  for (const call of FOR_CALLS) leases.set(call, await registry.obtain(call).lock());
  return Object.entries(callsOf(registry, (call) => leases.get(call) as Lease, passport));
}

describe(PAGE, () => {
  const time = new FakeClock();
  const redis = Object.assign(mockRedis(), { scan: silence });
  const warnings: string[] = [];
  const { commandTimeout, unavailableAfter, timeout } = TIMES;
  const registry = new RedisLockRegistry(redis, {
    ...{ registryKey: 'down', commandTimeout, unavailableAfter },
    onWarning: ({ code }) => void warnings.push(code),
  });
  const ends = new Map<string, Awaited<ReturnType<FakeClock['settled']>>>();
  let endOfRun: Awaited<ReturnType<FakeClock['settled']>>;

  beforeAll(async () => {
    const calls = await preparedOn(registry);
    let finish = (_value: string): void => undefined;
    const running = registry.run('running', () => new Promise<string>((done) => (finish = done)));
    await time.advance(0);
    redis.eval.mockImplementation(silence);
    redis.evalSha.mockImplementation(silence);
    finish('done');
    const settled = calls.map(async ([call, make]) => ends.set(call, await time.settled(make())));
    [endOfRun] = await Promise.all([time.settled(running), ...settled]);
  });

  afterAll(() => time.restore());

  it(`${PAGE} says of each call what it does while Redis is down`, () => {
    expect(ROWS.map(({ call }) => call).sort()).toEqual([...ends.keys()].sort());
  });

  it.each(ROWS)(`${PAGE} says that $call ends with $error after $time`, ({ call, error, time: limit }) => {
    const end = ends.get(call);
    expect(end?.error).toBeInstanceOf(LockError);
    expect(end).toMatchObject({ error: { name: error } });
    expect(end?.after).toBeGreaterThan(TIMES[limit] - 50);
    expect(end?.after).toBeLessThan(TIMES[limit] + 50);
  });

  it(`${PAGE} says that the end of run keeps the result, and warns`, () => {
    expect(endOfRun).toMatchObject({ after: commandTimeout, value: 'done' });
    expect(warnings).toContain('RELEASE_FAILED');
  });

  it(`${PAGE} says which calls try again after an answer that may pass`, async () => {
    const [, ofCalls] = /^- After \[an answer that may pass\]\S+, such as `LOADING`, (.*)$/m.exec(readPage(PAGE)) ?? [];
    const client = mockRedis();
    const loaded = new RedisLockRegistry(client, { registryKey: 'loading' });
    const calls = [...(await preparedOn(loaded)), ['lead', () => loaded.lead('leads', () => undefined)] as const];
    const loading = async () => Promise.reject(new Error('LOADING Redis is loading the dataset in memory'));
    Object.assign(client, { eval: loading, evalSha: loading, scan: loading });
    const trying = new Set(calls.map(([call]) => call));
    for (const [call, make] of calls) make().then(...Array(2).fill(() => trying.delete(call)));
    await time.advance(200);
    const still = [...trying].sort();
    await time.settled(loaded.close({ timeout: 0 }));
    expect(still).toEqual(codeSpans(ofCalls ?? '').sort());
  });

  it(`${PAGE} says that lead waits, and that close resolves`, async () => {
    const stop = new AbortController();
    const leading = time.settled(registry.lead('leader', () => undefined, { signal: stop.signal }));
    await time.advance(unavailableAfter + 500);
    stop.abort();
    expect((await leading)?.after).toBeGreaterThan(unavailableAfter);
    expect((await time.settled(registry.close({ timeout })))?.after).toBeLessThanOrEqual(timeout + commandTimeout);
  });
});
