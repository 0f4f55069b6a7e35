import { beforeEach, expect, it, jest } from '@jest/globals';
import type { LockState, LockWarning } from '../../lib';
import { defaultName } from '../../lib/api/owner-name';
import { OpenWaits } from '../../lib/core/open-waits';
import { Wait, type WaitedLock } from '../../lib/core/wait';
import type { Connection } from '../../lib/redis/connection';
import { FakeClock } from '../support/fake-clock';

const RANDOM = 'h0pCmsO5S7mSQpHDOZJ1Sw:1700000000000000';
const THEIRS = `web-7:1:${RANDOM}`;

const time = FakeClock.install();
let warnings: LockWarning[];
/** When the first unanswered request was sent. */
let silentSince: number | undefined;
let open: OpenWaits;

beforeEach(() => {
  warnings = [];
  silentSince = undefined;
  open = create(1_000);
});

const create = (warnAfter: number) =>
  new OpenWaits(
    warnAfter,
    (warning) => void warnings.push(warning),
    {
      unansweredSince: (name: string) => (name === 'orders:42' ? silentSince : undefined),
    } as Partial<Connection> as Connection,
    () => [],
  );

const said = () => warnings.map(({ message }) => message);

function lockOf(inspect: () => Promise<Partial<LockState>>, known: Partial<WaitedLock> = {}): WaitedLock {
  return { names: { lock: 'orders:42' }, heldFor: undefined, lastHolder: undefined, inspect, ...known } as WaitedLock;
}

/** A caller that waits from now on. */
function begin(lock: WaitedLock | undefined, key = '42'): Wait {
  const wait = new Wait(key, Number.POSITIVE_INFINITY, undefined);
  wait.lock = lock;
  open.begin(wait);
  return wait;
}

const held = (owner: string, isOurs = false, heldFor?: number) =>
  lockOf(async () => ({ owner, remaining: 500.4, isOurs }), { heldFor });
const failing = (known: Partial<WaitedLock> = {}) => lockOf(() => Promise.reject(new Error('no')), known);
const never = (known: Partial<WaitedLock> = {}) => lockOf(() => new Promise(() => undefined), known);
const free = () => lockOf(async () => ({ owner: undefined, remaining: 0 }));

const DEADLOCK = '. If the caller is the holder, this is a deadlock: only `run` is re-entrant';
const NO_LOCK = 'another program holds it, in no form that is known';
const JAVAS = '8bfa1e76-70c1-4b13-9c53-7b3a3f6a2a0e';
const HERE = `${defaultName('/')}/${RANDOM}`;
const last = (owner: string) => ({ lastHolder: { owner, remaining: 500 } });
/** What stands behind the holder. */
const of = (owner: string) => `(owner ${owner}, its key expires in 500 ms unless it is renewed)`;
const NO_OWNER_END = 'its key expires in 500 ms unless it is renewed';

it.each<[string, WaitedLock | undefined, LockWarning['holder'] | object]>([
  ['it is free by now', free(), {}],
  ['its holder is not known', undefined, {}],
  ['its holder is not known', failing(), {}],
  [`web-7:1 holds it ${of(THEIRS)}`, held(THEIRS), { owner: THEIRS, name: 'web-7:1', isThisProcess: false }],
  [`web-7:1 holds it by the last answer ${of(THEIRS)}`, failing(last(THEIRS)), { remaining: 500, heldFor: undefined }],
  [`web-7:1 holds it ${of(THEIRS)}`, held(THEIRS, false, 70), { isThisProcess: false, heldFor: undefined }],
  [`another client holds it ${of(JAVAS)}`, held(JAVAS), { owner: JAVAS, name: undefined, isAroundCaller: false }],
  [`${NO_LOCK}, and ${NO_OWNER_END}`, held('secret'), { owner: undefined }],
  [`${NO_LOCK} by the last answer, and ${NO_OWNER_END}`, failing(last('secret')), { owner: undefined }],
  ['web-7:1 unlocked it, and its minHold ends in 500 ms', held(`kept@${THEIRS}`), { isThisProcess: false }],
  [`web-7:1 detached its lease, and ${NO_OWNER_END}`, held(`detached@${THEIRS}`), { isThisProcess: false }],
  [`this process holds it ${of(HERE)}${DEADLOCK}`, held(HERE), { isThisProcess: true, heldFor: undefined }],
  [`this process holds it, for 71 ms ${of(THEIRS)}`, held(THEIRS, true, 70.6), { heldFor: 70.6 }],
  [`this process holds it, for 1101 ms ${of(THEIRS)}${DEADLOCK}`, held(THEIRS, true, 1_101), { heldFor: 1_101 }],
  [
    `this process holds it, for 1200 ms by the last answer ${of(THEIRS)}${DEADLOCK}`,
    failing({ ...last(THEIRS), heldFor: 1_200 }),
    { isThisProcess: true, heldFor: 1_200 },
  ],
])('A warning about a long wait says: %s (%#)', async (message, lock, holder) => {
  begin(lock);
  await time.advance(1_100);
  expect(said()).toEqual([`A caller has waited for lock "42" for 1 s: ${message}`]);
  const isKnown = Object.keys(holder as object).length > 0;
  expect(warnings[0]).toMatchObject({ code: 'LONG_WAIT', key: '42', ...(isKnown ? { holder } : {}) });
  expect('holder' in (warnings[0] as object)).toBe(isKnown);
});

it('A warning about a long wait says that one of the callers is inside a run that holds the lock', async () => {
  const lock = held(THEIRS);
  begin(lock);
  begin(lock).scope = { isInside: (name) => name === 'orders:42', heldKeys: ['42'], heldAlone: [] };
  await time.advance(1_100);
  expect(said()).toEqual([
    `2 callers have waited for lock "42" for 1 s: this process holds it ${of(THEIRS)}. The caller is inside a \`run\` that holds the lock: this may be a deadlock`,
  ]);
});

it('A warning about a long wait does not ask a Redis that is silent, and says for how long it was', async () => {
  const inspect = jest.fn(async () => ({}));
  begin(lockOf(inspect));
  silentSince = time.now;
  await time.advance(1_100);
  expect([inspect.mock.calls, said()]).toEqual([
    [],
    ['A caller has waited for lock "42" for 1 s: its holder is not known. Redis has not answered for 1 s'],
  ]);
});

it('A warning about a long wait waits 250 ms for the answer who holds the lock', async () => {
  begin(never());
  silentSince = time.now + 851;
  await time.advance(1_349);
  expect(warnings).toEqual([]);
  await time.advance(1);
  expect(said()).toEqual([expect.stringMatching(/not known. Redis has not answered for 499 ms$/)]);
});

it('A warning about a long wait names each lock once, leaves out who has left, and comes in their own time', async () => {
  const [lock, other] = [free(), free()];
  const [first, second] = [begin(lock), begin(lock)];
  await time.advance(90);
  begin(other, 'other');
  await time.advance(200);
  const late = begin(lock);
  await time.advance(809);
  expect(said()).toEqual([]);
  open.end(second);
  await time.advance(1);
  expect(said()).toEqual([
    'A caller has waited for lock "42" for 1 s: it is free by now',
    'A caller has waited for lock "other" for 1 s: it is free by now',
  ]);
  await time.advance(290);
  expect(said().slice(2)).toEqual(['A caller has waited for lock "42" for 1 s: it is free by now']);
  open.end(late);
  await time.advance(910);
  // Twice as long, by the time at which the first warning came.
  expect(
    said()
      .slice(3)
      .map((message) => / for (\d+) s/.exec(message)?.[1]),
  ).toEqual(['2', '2']);
  begin(lock);
  await time.advance(1_500);
  expect(warnings).toHaveLength(6); // only of the new one
  open.end(first);
});

it('A warning about a long wait comes in its time for a nested call whose scope ended, though others began to wait since', async () => {
  const nested = new Wait('nested', Number.POSITIVE_INFINITY, undefined);
  open.beginReentry(nested);
  await time.advance(500);
  begin(free());
  open.endReentry(nested);
  open.begin(nested);
  await time.advance(600);
  expect(said()).toEqual(['A caller has waited for lock "nested" for 1 s: its holder is not known']);
});

it('A warning about a long wait is not about a caller that has its result while the lock is asked about', async () => {
  let answer = (): void => undefined;
  const wait = begin(lockOf(() => new Promise((resolve) => (answer = () => resolve({})))));
  await time.advance(1_100);
  wait.isOver = true;
  answer();
  await time.advance(1_000);
  expect(warnings).toEqual([]);
});

it('The waits of a registry that is closed are interrupted, and later ones are refused', async () => {
  const [first, wait] = [begin(free()), begin(free())];
  const reentry = new Wait('inside', 1_000, undefined);
  open.beginReentry(reentry);
  let isEmpty = false;
  open.close();
  void open.none().then(() => (isEmpty = true));
  expect(() => wait.throwIfInterrupted()).toThrow('closed');
  expect(reentry.isInterrupted).toBe(false);
  expect(() => begin(free())).toThrow('closed');
  open.end(first);
  await time.advance(1);
  expect(isEmpty).toBe(false);
  open.end(wait);
  await time.advance(0);
  expect(isEmpty).toBe(true);
  await open.none();
  open.stopWarning();
  open.beginReentry(new Wait('inside', 1_000, undefined));
  expect([time.keepingAlive, time.pending]).toEqual([0, 0]);
});

it('The waits of a registry that wait for a re-entry are warned of until they end, and are not awaited', async () => {
  const reentry = new Wait('inside', Number.POSITIVE_INFINITY, undefined);
  reentry.lock = free();
  open.beginReentry(reentry);
  const over = begin(free());
  over.isOver = true;
  begin(undefined);
  begin(free());
  expect(open.awaited).toEqual(['orders:42']);
  await time.advance(1_100);
  expect(warnings.map(({ key }) => key).sort()).toEqual(['42', '42', 'inside']);
  open.endReentry(reentry);
  await time.advance(10_000);
  expect(warnings.filter(({ key }) => key === 'inside')).toHaveLength(1);
  expect(time.keepingAlive).toBe(0);
});

it('The waits of a registry are reported after a tenth of a short warnAfter more, and never with an infinite one', async () => {
  open = create(Number.POSITIVE_INFINITY);
  begin(free());
  expect(time.pending).toBe(0);
  open = create(100);
  begin(free());
  await time.advance(109);
  expect(warnings).toEqual([]);
  await time.advance(1);
  expect(warnings).toHaveLength(1);
  open = create(100);
  open.beginReentry(new Wait('inside', Number.POSITIVE_INFINITY, undefined));
  await time.advance(110);
  expect(warnings.map(({ key }) => key)).toEqual(['42', 'inside']);
});

it('Waits for one lock that become long together are reported together, and are not copied once for each of them', async () => {
  const lock = free();
  for (let i = 0; i < 1_000; i++) begin(lock);
  const copying = jest.spyOn(Array.prototype, Symbol.iterator as never);
  await time.advance(1_100);
  const copies = copying.mock.calls.length;
  copying.mockRestore();
  expect(said()).toEqual(['1000 callers have waited for lock "42" for 1 s: it is free by now']);
  expect(copies).toBeLessThan(100);
});
