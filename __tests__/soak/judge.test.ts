import { describe, expect, it } from '@jest/globals';
import type { Access } from '../../support/judge/exclusion';
import { leasesOf } from '../../support/judge/leases';
import type { WorkerRecord } from '../../support/judge/records';
import { exclusionViolations, TokenJudge } from '../../support/judge/violations';

const KEY = 'key';

/** The records of one lease: what `remaining` said at these times, then the unlock or the loss. */
function lease(
  call: string,
  token: number,
  samples: readonly (readonly [at: number, remaining: number])[],
  end?: { unlocking: readonly [at: number, remaining: number] } | { lost: readonly [at: number, reason: string] },
): WorkerRecord[] {
  const sample = ([at, remaining]: readonly [number, number]) => ({ from: at, to: at, remaining });
  const [first, ...others] = samples.map(sample);
  return [
    { event: 'called', call, key: KEY, others: [], what: 'lock', at: 0 },
    { event: 'granted', call, token, sample: first ?? sample([0, 0]) },
    ...others.map((one): WorkerRecord => ({ event: 'seen', call, sample: one })),
    ...(end !== undefined && 'unlocking' in end
      ? [{ event: 'unlocking', call, sample: sample(end.unlocking) } as const]
      : []),
    ...(end !== undefined && 'lost' in end
      ? [{ event: 'lost', call, at: end.lost[0], reason: end.lost[1] } as const]
      : []),
  ];
}

const shared = (access: Access, records: WorkerRecord[]) =>
  records.map((record): WorkerRecord => (record.event === 'called' ? { ...record, access } : record));

const exclusion = (...processes: WorkerRecord[][]) =>
  exclusionViolations(processes.flatMap(leasesOf)).map(({ kind, calls }) => [kind, ...(calls ?? [])]);

const tokens = (...processes: WorkerRecord[][]) =>
  new TokenJudge().violations(processes.flatMap(leasesOf)).map(({ kind, calls }) => [kind, ...(calls ?? [])]);

describe('The judge of the soak', () => {
  it('accepts leases that follow one another', () => {
    const a = lease(
      'a',
      1,
      [
        [10, 500],
        [40, 470],
      ],
      { unlocking: [50, 460] },
    );
    const b = lease('b', 2, [[51, 500]], { unlocking: [60, 491] });
    expect([...exclusion(a, b), ...tokens(a, b)]).toEqual([]);
  });

  it('sees two leases that were valid at one time, though neither was read while the other was', () => {
    const a = lease('a', 1, [
      [10, 500],
      [90, 420],
    ]);
    const b = lease('b', 2, [[50, 500]], { unlocking: [60, 490] });
    expect(exclusion(a, b)).toEqual([['too many holders', 'a', 'b']]);
  });

  it('sees an overlap with a long lease behind shorter ones', () => {
    const long = lease(
      'long',
      1,
      [
        [10, 500],
        [90, 420],
      ],
      { unlocking: [100, 410] },
    );
    const [b, c] = [
      lease('b', 2, [[20, 500]], { unlocking: [30, 490] }),
      lease('c', 3, [[80, 500]], { unlocking: [85, 495] }),
    ];
    expect(exclusion(long, b, c)).toEqual([
      ['too many holders', 'long', 'b'],
      ['too many holders', 'long', 'c'],
    ]);
  });

  it('holds a dead process to be entitled until the end of what it was promised', () => {
    const dead = lease('dead', 1, [[10, 500]]);
    expect(exclusion(dead, lease('b', 2, [[509, 500]]))).toEqual([['promise broken', 'dead', 'b']]);
    expect(exclusion(dead, lease('b', 2, [[511, 500]]))).toEqual([]);
  });

  it('does not count the time after a process gave its lease up, or read that it was over', () => {
    const unlocked = lease('a', 1, [[10, 500]], { unlocking: [20, 490] });
    const closed = lease('a', 1, [[10, 500]], { lost: [20, 'closed'] });
    const over = lease('a', 1, [
      [10, 500],
      [20, 0],
    ]);
    for (const a of [unlocked, closed, over]) expect(exclusion(a, lease('b', 2, [[21, 500]]))).toEqual([]);
  });

  it('does not count the time in which a lease was not confirmed', () => {
    const a = lease(
      'a',
      1,
      [
        [10, 100],
        [50, 0],
        [200, 500],
      ],
      { unlocking: [210, 490] },
    );
    const b = lease('b', 2, [[100, 90]], { unlocking: [110, 80] });
    expect(exclusion(a, b)).toEqual([]);
  });

  it('keeps others out until a minHold ends, though the lease was unlocked before', () => {
    const held = (records: WorkerRecord[]) =>
      records.map((record): WorkerRecord => (record.event === 'called' ? { ...record, minHold: 300 } : record));
    const unlocked = held(lease('a', 1, [[10, 500]], { unlocking: [20, 490] }));
    expect(exclusion(unlocked, lease('b', 2, [[297, 500]]))).toEqual([['promise broken', 'a', 'b']]);
    expect(exclusion(unlocked, lease('b', 2, [[300, 500]]))).toEqual([]);
    // What is held for longer than its minHold is free at once.
    const late = held(lease('a', 1, [[10, 500]], { unlocking: [400, 110] }));
    expect(exclusion(late, lease('b', 2, [[401, 500]]))).toEqual([]);
    // Its key ended, or is left to its ttl: nothing is promised.
    const lost = held(lease('a', 1, [[10, 500]], { lost: [20, 'closed'] }));
    expect(exclusion(lost, lease('b', 2, [[30, 500]]))).toEqual([]);
    const kept = ['a', 'b', 'c'].map((call) =>
      shared('permit', held(lease(call, 1, [[10, 500]], { unlocking: [20, 1] }))),
    );
    expect(exclusion(...kept, shared('permit', lease('d', 1, [[30, 500]])))).toEqual([
      ['promise broken', 'a', 'b', 'c', 'd'],
    ]);
  });

  it('sees a lease that Redis lost before the end of what it was promised', () => {
    expect(exclusion(lease('a', 1, [[10, 500]], { lost: [400, 'stolen'] }))).toEqual([['lost too early', 'a']]);
    expect(exclusion(lease('a', 1, [[10, 500]], { lost: [511, 'expired'] }))).toEqual([]);
    expect(exclusion(lease('a', 1, [[10, 500]], { lost: [400, 'closed'] }))).toEqual([]);
  });

  it('sees tokens that do not rise in the order of the grants', () => {
    const first = lease('first', 5, [[10, 500]], { unlocking: [20, 490] });
    for (const token of [4, 5]) {
      const second = lease('second', token, [[30, 500]], { unlocking: [40, 490] });
      expect(tokens(second, first)).toEqual([['token does not rise', 'first', 'second']]);
    }
    // It was over before its process learnt of it: the grant may be older than the first one.
    expect(tokens(first, lease('late', 4, [[30, 0]]))).toEqual([]);
  });

  it('lets as many into a semaphore as it has permits', () => {
    const permit = (call: string, from: number) =>
      shared('permit', lease(call, 1, [[from, 500]], { unlocking: [100, 400] }));
    const inside = [permit('a', 10), permit('b', 20), permit('c', 30)];
    expect(exclusion(...inside)).toEqual([]);
    expect(exclusion(...inside, permit('d', 40))).toEqual([['too many holders', 'a', 'b', 'c', 'd']]);
    expect(exclusion(...inside, permit('d', 100))).toEqual([]);
    const two = permit('two', 15).map((record) => (record.event === 'called' ? { ...record, permits: 2 } : record));
    expect(exclusion(permit('a', 10), two)).toEqual([]);
    expect(exclusion(permit('a', 10), two, permit('b', 20))).toEqual([['too many holders', 'a', 'two', 'b']]);
    const promised = shared('permit', lease('dead', 1, [[10, 500]]));
    expect(exclusion(promised, permit('b', 20), permit('c', 30), permit('d', 40))).toEqual([
      ['promise broken', 'dead', 'b', 'c', 'd'],
    ]);
  });

  it('lets readers in together, and a writer in alone', () => {
    const reader = (call: string, from: number) =>
      shared('read', lease(call, 1, [[from, 500]], { unlocking: [100, 400] }));
    const writer = (call: string, from: number) =>
      shared('write', lease(call, 1, [[from, 500]], { unlocking: [100, 400] }));
    expect(exclusion(reader('a', 10), reader('b', 20), reader('c', 30), reader('d', 40))).toEqual([]);
    expect(exclusion(reader('a', 10), writer('b', 20))).toEqual([['too many holders', 'a', 'b']]);
    expect(exclusion(writer('a', 10), reader('b', 20))).toEqual([['too many holders', 'a', 'b']]);
    expect(exclusion(writer('a', 10), writer('b', 100))).toEqual([]);
  });
});
