import { describe, expect, it } from '@jest/globals';
import type { FoundLock } from '../../../lib/tools/inspection/found-lock';
import { History } from '../../../lib/tools/inspection/history';

const RANDOM = 'AAAAAAAAAAAAAAAAAAAAAA';

/** As `watch` finds it; the last of `owners` is the one whose lease ends first. */
function held(lock: string, ...owners: string[]): FoundLock {
  const holders = owners.map((owner) => ({
    owner,
    holder: owner.replace(/^(kept|detached)@/, '').slice(0, 1),
    remaining: 1_000,
    isKept: owner.startsWith('kept@'),
    permits: 1,
    acquiredAt: null,
    heldFor: null,
  }));
  const [{ owner, holder } = { owner: '', holder: '' }] = holders;
  const isShared = lock === 'sem';
  return {
    ...{
      lock,
      registryKey: null,
      key: null,
      kind: 'lock',
      format: isShared ? 'shared' : 'spring',
      type: null,
      types: [],
      typeName: '',
      isWaitingExact: true,
    },
    ...{
      isSure: true,
      isCertain: true,
      isKept: owner.startsWith('kept@'),
      owner,
      holder,
      holders,
      remaining: 1_000,
      acquiredAt: null,
      heldFor: null,
    },
    ...{ renewed: null, permits: null, waiting: null, queue: null, fencingToken: null },
  };
}

describe('What `watch` saw', () => {
  const whats = (...lists: FoundLock[][]): string[][] => {
    const history = new History();
    return lists.map((locks, i) => history.update(locks, i).map(({ what, holder }) => `${what} ${holder}`));
  };
  const [a, b] = [`a:${RANDOM}:1`, `b:${RANDOM}:1`];

  const [c, again, third] = [`c:${RANDOM}:1`, `a:${RANDOM}:2`, `a:${RANDOM}:3`];
  const shared = (...owners: string[]) => [held('sem', ...owners)];
  const key = (owner: string) => [held('key', owner)];
  const WAITED = [{ ...held('key'), holder: null, owner: null }];
  const AS_SHARED = (...owners: string[]) => [{ ...held('key', ...owners), format: 'shared' as const }];

  it.each<[string, FoundLock[][], string[][]]>([
    ['nothing while the holders of a shared lock only renew', [shared(a, b), shared(b, a), shared(a, b)], [[], [], []]],
    [
      'that somebody entered a shared lock, or left it',
      [shared(a), shared(a, b), shared(b), []],
      [[], ['entered b'], ['left a'], ['free b']],
    ],
    [
      'that a shared lock was passed on to as many as there are',
      [shared(a), shared(b, c), shared(a)],
      [[], ['passed on b', 'entered c'], ['passed on a', 'left c']],
    ],
    [
      'that a holder of a shared lock has it again, and not that it was passed on or left',
      [shared(b, a), shared(b, again), shared(a), shared(b, again)],
      [[], ['taken a'], ['taken a', 'left b'], ['taken a', 'entered b']],
    ],
    [
      'how many leases of a shared lock one process took and left',
      [shared(a, again), shared(third), shared(a, again)],
      [[], ['taken a', 'left a'], ['taken a', 'entered a']],
    ],
    [
      'that a permit is kept after an unlock, and not that it was taken',
      [shared(a, again), shared(`kept@${again}`, third), shared(third)],
      [[], ['kept a', 'taken a'], ['left a']],
    ],
    [
      'another owner of a lock, and not what is kept after an unlock',
      [[], key(a), key(b), key(b), key(`kept@${b}`), key(`kept@${a}`)],
      [[], ['taken a'], ['passed on b'], [], ['kept b'], ['passed on a']],
    ],
    [
      'that a lock was taken, and not passed on, where the same process has it again, and that it was detached then',
      [key(a), key(again), key(`detached@${again}`), key(third)],
      [[], ['taken a'], ['detached a'], ['taken a']],
    ],
    [
      'that a lock is free, or taken, for which somebody waits',
      [[], WAITED, key(a), WAITED, WAITED, []],
      [[], [], ['taken a'], ['free a'], [], []],
    ],
    ['that a lock of one kind was one of another kind', [key(a), AS_SHARED(b, c)], [[], ['passed on b']]],
    ['that a lock of one kind was a shared one', [AS_SHARED(a, c), key(b)], [[], ['passed on b']]],
  ])('What `watch` saw is %s', (_, lists, expected) => {
    expect(whats(...lists)).toEqual(expected);
  });

  it('What `watch` saw is nothing before it has looked, and nothing of what is known already', () => {
    const history = new History();
    expect(history.seen(0)).toEqual([]);
    const lock = held('key', a);
    const holders = lock.holders.map((holder) => ({ ...holder, heldFor: 7 }));
    history.update([{ ...lock, holders }, ...WAITED.map((one) => ({ ...one, lock: 'other' }))], 0);
    expect(history.seen(9)).toMatchObject([
      { heldFor: 7, isOlder: false },
      { heldFor: null, isOlder: false },
    ]);
  });

  it('is that a lease was renewed, when more of it is left than before', () => {
    const history = new History();
    const renewed = (remaining: number, now: number, owner = a) => {
      history.update([{ ...held('key', owner), remaining }], now);
      return history.seen(now).map(({ renewed }) => renewed);
    };
    expect([renewed(1_000, 0), renewed(900, 100), renewed(1_000, 500), renewed(900, 600)]).toEqual([
      ...[[null], [null], [true], [true]],
    ]);
    // It is that of another holder then. Some ms may be those of the look.
    expect([renewed(1_000, 700, b), renewed(1_100, 800, b), renewed(1_201, 900, b)]).toEqual([[null], [null], [true]]);
    expect([renewed(100, 1_000, a), renewed(900, 1_100, `kept@${a}`)]).toEqual([[null], [null]]);
  });

  it('What `watch` saw first after nobody had looked for a while may have been there before', () => {
    const history = new History();
    const heldFor = (now: number, ...owners: string[]) => {
      history.update([held('sem', ...owners)], now);
      return history.seen(now).flatMap(({ holders }) => holders.map((one) => [one.holder, one.heldFor, one.isOlder]));
    };
    history.update([], 0);
    expect(heldFor(2_000, a)).toEqual([['a', 0, false]]);
    expect(heldFor(4_000, a)).toEqual([['a', 2_000, false]]);
    // Java has one owner value for all that it holds: after the gap it may have taken the lock again.
    expect(heldFor(60_000, a, b)).toEqual([
      ['a', null, true],
      ['b', null, true],
    ]);
    expect(heldFor(61_000, a, b)).toEqual([
      ['a', 1_000, true],
      ['b', 1_000, true],
    ]);
  });

  it('What `watch` saw is also the registryKey of a lock, which Redis says only while somebody listens', () => {
    const history = new History();
    const known = { registryKey: 'r', key: 'a:b' };
    history.update([{ ...held('r:a:b', a), ...known }], 0);
    history.update([held('r:a:b', a)], 1);
    expect(history.seen(1)).toMatchObject([known]);
  });

  it('What `watch` saw is for how long each holder of a shared lock was there, and not the lock', () => {
    const history = new History();
    const heldFor = (now: number, ...owners: string[]) => {
      history.update([held('sem', ...owners)], now);
      return history
        .seen(now)
        .map((lock) => [
          [lock.heldFor, lock.isOlder],
          ...lock.holders.map((one) => [one.holder, one.heldFor, one.isOlder]),
        ]);
    };
    expect(heldFor(0, a)).toEqual([
      [
        [null, true],
        ['a', null, true],
      ],
    ]);
    expect(heldFor(500, b, a)).toEqual([
      [
        [0, false],
        ['b', 0, false],
        ['a', 500, true],
      ],
    ]);
    expect(heldFor(900, `kept@${b}`)).toEqual([
      [
        [400, false],
        ['b', 400, false],
      ],
    ]);
  });

  it('is not that a lease was renewed, when its end is far off only because the look took long', () => {
    const history = new History();
    history.update([{ ...held('key', a), remaining: 10_000 }], 0);
    // It read the remaining time when it began, and the last answer came a second later.
    history.update([{ ...held('key', a), remaining: 9_000 }], 2_000, 1_000);
    expect(history.seen(2_000).map(({ renewed }) => renewed)).toEqual([null]);
    // So did this one, which read it at its end; and then the next look comes soon.
    history.update([{ ...held('key', b), remaining: 10_000 }], 9_000, 3_000);
    history.update([{ ...held('key', b), remaining: 9_500 }], 9_500, 9_400);
    expect(history.seen(9_500).map(({ renewed }) => renewed)).toEqual([null]);
  });
});
