import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DistributedLock, type Lease, LockError, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';
import { codeSpans, tableBelow } from './pages';

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

describe(PAGE, () => {
  const time = new FakeClock();
  const redis = Object.assign(mockRedis(), { scan: silence });
  const warnings: string[] = [];
  const { commandTimeout, unavailableAfter, timeout } = TIMES;
  const registry = new RedisLockRegistry(redis, {
    ...{ registryKey: 'down', commandTimeout, unavailableAfter },
    onWarning: ({ code }) => void warnings.push(code),
  });
  const leases = new Map<string, Lease>();
  let passport = '';

  /** A lock that nobody has. */
  const free = (call: string): DistributedLock => registry.obtain(`free:${call}`);
  /** A lease of its own for each call. */
  const held = (call: string) => leases.get(call) as Lease;

  const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
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
    forceUnlock: () => free('forceUnlock').forceUnlock(),
    list: () => registry.list()[Symbol.asyncIterator]().next(),
  };

  const ends = new Map<string, Awaited<ReturnType<FakeClock['settled']>>>();
  let endOfRun: Awaited<ReturnType<FakeClock['settled']>>;

  beforeAll(async () => {
    passport = await (await registry.obtain('adopt').lock()).detach();
    for (const call of ['renew', 'eval', 'unlock', 'detach']) leases.set(call, await registry.obtain(call).lock());
    let finish = (_value: string): void => undefined;
    const running = registry.run('running', () => new Promise<string>((done) => (finish = done)));
    await time.advance(0);
    redis.eval.mockImplementation(silence);
    redis.evalSha.mockImplementation(silence);
    finish('done');
    const calls = Object.entries(CALLS).map(async ([call, make]) => ends.set(call, await time.settled(make())));
    [endOfRun] = await Promise.all([time.settled(running), ...calls]);
  });

  afterAll(() => time.restore());

  it(`${PAGE} says of each call what it does while Redis is down`, () => {
    expect(ROWS.map(({ call }) => call).sort()).toEqual(Object.keys(CALLS).sort());
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

  it(`${PAGE} says that lead waits, and that close resolves`, async () => {
    const stop = new AbortController();
    const leading = time.settled(registry.lead('leader', () => undefined, { signal: stop.signal }));
    await time.advance(unavailableAfter + 500);
    stop.abort();
    expect((await leading)?.after).toBeGreaterThan(unavailableAfter);
    expect((await time.settled(registry.close({ timeout })))?.after).toBeLessThanOrEqual(timeout + commandTimeout);
  });
});
