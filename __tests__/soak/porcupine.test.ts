import { describe, expect, it } from '@jest/globals';
import { judgeByBoth } from '../../support/judge/both';
import type { Access } from '../../support/judge/exclusion';
import { hasGo } from '../../support/judge/porcupine';
import type { WorkerRecord } from '../../support/judge/records';
import { Random } from '../../support/random';

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

const ACCESSES: readonly (readonly Access[])[] = [['exclusive'], ['permit'], ['read', 'write']];

/**
 * Random leases of a key, each in a process of its own: many follow one another, and some come too early. None is read as
 * valid after it was read as over.
 */
function randomLeases(random: Random, key: string): WorkerRecord[][] {
  const accesses = random.pick(ACCESSES);
  let [free, token] = [0, 10];
  return Array.from({ length: random.whole(2, 4) }, (_, number) => {
    const call = `${key}-${number}`;
    const access = random.pick(accesses);
    const calledAt = Math.max(0, free - random.between(0, 40));
    let now = Math.max(calledAt, free + random.between(-10, 30));
    let deadline = now + random.between(0, 60);
    const sample = () => {
      const [from, remaining] = [now, Math.max(0, deadline - now)];
      now += random.between(0, 3);
      return { from, to: now, remaining };
    };
    const minHold = random.chance(0.15) ? random.between(5, 30) : undefined;
    const permits = access === 'permit' ? random.whole(1, 2) : 1;
    token += random.chance(0.1) ? -1 : 1;
    const hasToken = access === 'exclusive' || access === 'write';
    const records: WorkerRecord[] = [
      { event: 'called', call, key, access, permits, minHold, others: [], what: 'lock', at: calledAt },
      { event: 'granted', call, token: hasToken ? token : undefined, sample: sample() },
    ];
    for (let reading = random.whole(0, 5); reading > 0 && deadline > now; reading--) {
      now += random.between(0, 15);
      if (deadline > now && random.chance(0.3)) deadline = now + random.between(20, 60);
      records.push({ event: 'seen', call, sample: sample() });
    }
    free = now;
    const end = random.pick(['unlocked', 'release unknown', 'no answer', 'stolen', 'expired', 'closed', 'dead']);
    if (end === 'stolen' || end === 'expired' || end === 'closed') {
      records.push({ event: 'lost', call, reason: end, at: now });
    } else if (end === 'dead') {
      free = deadline;
    } else {
      records.push({ event: 'unlocking', call, sample: sample() });
      now += random.between(0, 8);
      if (end !== 'no answer') records.push({ event: 'settled', call, outcome: end as 'unlocked', at: now });
    }
    return records;
  });
}

(hasGo() ? describe : describe.skip)('The judge of the soak, and Porcupine', () => {
  it.each(CASES)('judge alike: %s', (_, isRejected, processes) => {
    const { ownKeys, porcupineKeys } = judgeByBoth(processes);
    const expected = isRejected ? ['key'] : [];
    expect({ ownKeys, porcupineKeys }).toEqual({ ownKeys: expected, porcupineKeys: expected });
  });

  it('judge 3,000 random histories alike', () => {
    const random = new Random(1);
    const processes = Array.from({ length: 3_000 }, (_, number) => randomLeases(random, `key-${number}`)).flat();
    const { ownKeys, porcupineKeys, unknown } = judgeByBoth(processes);
    expect(porcupineKeys).toEqual(ownKeys);
    expect(unknown).toEqual([]);
    expect(ownKeys.length).toBeGreaterThan(300);
    expect(ownKeys.length).toBeLessThan(2_700);
  });
});
