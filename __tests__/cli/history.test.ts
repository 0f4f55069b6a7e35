import { describe, expect, it } from '@jest/globals';
import type { FoundLock } from '../../lib/inspection/found-lock';
import { History } from '../../lib/inspection/history';

const RANDOM = 'AAAAAAAAAAAAAAAAAAAAAA';

/** As `watch` finds it; the last of `owners` is the one whose lease ends first. */
function held(lock: string, ...owners: string[]): FoundLock {
  const holders = owners.map((owner) => ({
    owner,
    holder: owner.replace('kept@', '').slice(0, 1),
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

  it('is nothing while the holders of a shared lock only renew', () => {
    expect(whats([held('sem', a, b)], [held('sem', b, a)], [held('sem', a, b)])).toEqual([[], [], []]);
  });

  it('is that somebody entered a shared lock, or left it', () => {
    const lists = [[a], [a, b], [b]].map((owners) => [held('sem', ...owners)]);
    expect(whats(...lists, [])).toEqual([[], ['entered b'], ['left a'], ['free b']]);
  });

  it('is that a holder of a shared lock has it again, and not that it was passed on or left', () => {
    const again = `a:${RANDOM}:2`;
    const lists = [[b, a], [b, again], [a], [b, again]].map((owners) => [held('sem', ...owners)]);
    expect(whats(...lists)).toEqual([[], ['taken a'], ['taken a', 'left b'], ['taken a', 'entered b']]);
  });

  it('is another owner of a lock, and not what is kept after an unlock', () => {
    const lists = [a, b, `kept@${b}`].map((owner) => [held('key', owner)]);
    expect(whats([], ...lists)).toEqual([[], ['taken a'], ['passed on b'], ['kept b']]);
  });

  it('What `watch` saw is that a lock was taken, and not passed on, where the same process has it again', () => {
    const lists = [a, `a:${RANDOM}:2`].map((owner) => [held('key', owner)]);
    expect(whats(...lists)).toEqual([[], ['taken a']]);
  });

  it('is that a lease was renewed, when more of it is left than before', () => {
    const history = new History();
    const renewed = (remaining: number, now: number) => {
      history.update([{ ...held('key', a), remaining }], now);
      return history.seen(now).map(({ renewed }) => renewed);
    };
    expect([renewed(1_000, 0), renewed(900, 100), renewed(1_000, 500), renewed(900, 600)]).toEqual([
      ...[[null], [null], [true], [true]],
    ]);
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
  });
});
