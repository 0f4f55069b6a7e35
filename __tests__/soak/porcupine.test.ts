import { describe, expect, it } from '@jest/globals';
import { judgeByBoth } from '../../support/judge/both';
import type { Access } from '../../support/judge/exclusion';
import { hasGo } from '../../support/judge/porcupine';
import type { WorkerRecord } from '../../support/judge/records';

/** A lease from its call on: what `remaining` said at the grant, then how it ended. */
function lease(
  call: string,
  [calledAt, grantedAt, remaining]: readonly [number, number, number],
  options: {
    readonly token?: number;
    readonly access?: Access;
    readonly permits?: number;
    readonly minHold?: number;
    readonly unlocked?: readonly [at: number, answered?: number];
    readonly lost?: readonly [at: number, reason: string];
  } = {},
): WorkerRecord[] {
  const { token, access = 'exclusive', permits = 1, minHold, unlocked, lost } = options;
  const sample = (at: number) => ({ from: at, to: at, remaining: remaining - (at - grantedAt) });
  const [unlockedAt = 0, answeredAt] = unlocked ?? [];
  return [
    { event: 'called', call, key: 'key', access, permits, minHold, others: [], what: 'lock', at: calledAt },
    { event: 'granted', call, token, sample: sample(grantedAt) },
    ...(lost === undefined ? [] : [{ event: 'lost', call, at: lost[0], reason: lost[1] } as const]),
    ...(unlocked === undefined ? [] : [{ event: 'unlocking', call, sample: sample(unlockedAt) } as const]),
    ...(answeredAt === undefined ? [] : [{ event: 'settled', call, outcome: 'unlocked', at: answeredAt } as const]),
  ];
}

const permit = { access: 'permit' } as const;

/** Whether both judges reject it. */
const CASES: readonly (readonly [string, boolean, readonly WorkerRecord[][]])[] = [
  [
    'leases that follow one another',
    false,
    [
      lease('a', [0, 10, 500], { unlocked: [50, 60], token: 1 }),
      lease('b', [5, 55, 500], { unlocked: [70, 71], token: 2 }),
    ],
  ],
  ['two leases at a time', true, [lease('a', [0, 10, 500], { unlocked: [50, 60] }), lease('b', [5, 40, 500])]],
  [
    'a lease in the time that was promised to a dead process',
    true,
    [lease('a', [0, 10, 500]), lease('b', [5, 509, 9])],
  ],
  ['a lease after that time', false, [lease('a', [0, 10, 500]), lease('b', [5, 511, 9])]],
  [
    'an unlock that was never answered',
    false,
    [lease('a', [0, 10, 500], { unlocked: [50] }), lease('b', [5, 60, 9], { unlocked: [61] })],
  ],
  [
    'a lease in the minHold of another one',
    true,
    [lease('a', [0, 10, 500], { minHold: 300, unlocked: [20, 21] }), lease('b', [5, 290, 9])],
  ],
  [
    'a token that does not rise',
    true,
    [
      lease('a', [0, 10, 500], { token: 5, unlocked: [20, 30] }),
      lease('b', [31, 40, 500], { token: 5, unlocked: [50, 60] }),
    ],
  ],
  ['a lease that Redis lost too early', true, [lease('a', [0, 10, 500], { lost: [400, 'stolen'] })]],
  ['a lease that was lost in time', false, [lease('a', [0, 10, 500], { lost: [511, 'expired'] })]],
  [
    'a lease that its process gave up',
    false,
    [lease('a', [0, 10, 500], { lost: [100, 'closed'] }), lease('b', [5, 110, 9])],
  ],
  ['as many permits as there are', false, ['a', 'b', 'c'].map((call) => lease(call, [0, 10, 500], permit))],
  ['one permit too many', true, ['a', 'b', 'c', 'd'].map((call) => lease(call, [0, 10, 500], permit))],
  [
    'permits that are too many together',
    true,
    [lease('a', [0, 10, 500], { ...permit, permits: 2 }), lease('b', [0, 10, 500], { ...permit, permits: 2 })],
  ],
  ['readers at a time', false, ['a', 'b'].map((call) => lease(call, [0, 10, 500], { access: 'read' }))],
  [
    'a writer beside a reader',
    true,
    [lease('a', [0, 10, 500], { access: 'read' }), lease('b', [0, 10, 500], { access: 'write' })],
  ],
];

(hasGo() ? describe : describe.skip)('The judge of the soak, and Porcupine', () => {
  it.each(CASES)('judge alike: %s', (_, isRejected, processes) => {
    const { ownKeys, porcupineKeys } = judgeByBoth(processes);
    const expected = isRejected ? ['key'] : [];
    expect({ ownKeys, porcupineKeys }).toEqual({ ownKeys: expected, porcupineKeys: expected });
  });
});
