import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type DistributedLock, type Lease, LockError, RedisLockRegistry } from '../../lib';
import { machineDelay } from '../support/machine-delay';
import { connectToNode, Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { codeSpans, tableBelow } from './pages';

const PAGE = 'docs/operations.md';

/** ms, of the options that the table names. */
const TIMES: Readonly<Record<string, number>> = { commandTimeout: 800, unavailableAfter: 1_600, timeout: 300 };

/** The calls of the table that reject, each with its error and the option that says after how long. */
const ROWS = tableBelow(PAGE, 'When Redis is down').flatMap(([calls = '', error = '', after = '']) => {
  const [name = ''] = codeSpans(error);
  const [time = ''] = codeSpans(after);
  const names = calls.startsWith('the end') ? [] : codeSpans(calls).filter((call) => call !== 'multi');
  return name === '' ? [] : names.map((call) => ({ call, error: name, time }));
});

describePrivate(PAGE, () => {
  let server: Node;
  let client: TestClient;
  let registry: RedisLockRegistry;
  const leases = new Map<string, Lease>();
  let passport = '';
  const warnings: string[] = [];

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

  let endOfRun: { result: unknown; after: number };
  const ends = new Map<string, { error: unknown; after: number }>();

  beforeAll(async () => {
    server = await Node.start();
    client = await connectToNode(server.address);
    const { commandTimeout, unavailableAfter } = TIMES as { commandTimeout: number; unavailableAfter: number };
    const onWarning = ({ code }: { code: string }) => void warnings.push(code);
    registry = new RedisLockRegistry(client, { registryKey: 'down', commandTimeout, unavailableAfter, onWarning });
    passport = await (await registry.obtain('adopt').lock()).detach();
    for (const call of ['renew', 'eval', 'unlock', 'detach']) leases.set(call, await registry.obtain(call).lock());
    let finish = (_value: string): void => undefined;
    let running: Promise<string> | undefined;
    await new Promise<void>((resolve) => {
      running = registry.run('running', () => {
        resolve();
        return new Promise<string>((done) => {
          finish = done;
        });
      });
    });
    server.freeze();
    const start = performance.now();
    finish('done');
    const ended = running?.then((result) => {
      endOfRun = { result, after: performance.now() - start };
    });
    await Promise.all([
      ended,
      ...Object.entries(CALLS).map(async ([call, make]) => {
        const error = await make().then(
          () => 'nothing',
          (reason: unknown) => reason,
        );
        ends.set(call, { error, after: performance.now() - start });
      }),
    ]);
  }, 30_000);

  afterAll(async () => {
    server.thaw();
    await registry.close({ timeout: 0 });
    client.destroy();
    await server.stop();
  });

  it(`${PAGE} says of each call what it does while Redis is down`, () => {
    expect(ROWS.map(({ call }) => call).sort()).toEqual(Object.keys(CALLS).sort());
  });

  it.each(ROWS)(`${PAGE} says that $call ends with $error after $time`, ({ call, error, time }) => {
    const end = ends.get(call);
    expect(end?.error).toBeInstanceOf(LockError);
    expect(end?.error).toMatchObject({ name: error });
    expect(end?.after).toBeGreaterThan((TIMES[time] as number) - 50);
    expect(end?.after).toBeLessThan((TIMES[time] as number) + 400 + machineDelay());
  });

  it(`${PAGE} says that the end of run keeps the result, and warns`, () => {
    expect(endOfRun.result).toBe('done');
    expect(endOfRun.after).toBeLessThan((TIMES.commandTimeout as number) + 400 + machineDelay());
    expect(warnings).toContain('RELEASE_FAILED');
  });

  it(`${PAGE} says that lead waits, and that close resolves`, async () => {
    const stop = new AbortController();
    let hasEnded = false;
    const leading = registry
      .lead('leader', () => undefined, { signal: stop.signal })
      .then(() => {
        hasEnded = true;
      });
    await new Promise((resolve) => setTimeout(resolve, (TIMES.unavailableAfter as number) + 500));
    expect(hasEnded).toBe(false);
    stop.abort();
    await leading;
    const start = performance.now();
    await registry.close({ timeout: TIMES.timeout as number });
    const { commandTimeout = 0, timeout = 0 } = TIMES;
    expect(performance.now() - start).toBeLessThan(timeout + 2 * commandTimeout + 400 + machineDelay());
  });
});
