import { describe, expect, it } from '@jest/globals';
import { judgeByBoth } from '../../../support/judge/both';
import type { Access } from '../../../support/judge/exclusion';
import { hasGo } from '../../../support/judge/porcupine';
import type { WorkerRecord } from '../../../support/judge/records';
import { Random } from '../../../support/random';
import { HISTORIES, processesOf } from './histories';

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
  it.each(HISTORIES)('Porcupine and the judge of the soak judge alike: %s', (_, verdicts, leases) => {
    const { ownKeys, porcupineKeys } = judgeByBoth(processesOf(leases));
    const rejected = verdicts.length > 0 ? ['key'] : [];
    expect({ ownKeys, porcupineKeys }).toEqual({ ownKeys: rejected, porcupineKeys: rejected });
  });

  it('Porcupine and the judge of the soak judge 3,000 random histories alike', () => {
    const random = new Random(1);
    const processes = Array.from({ length: 3_000 }, (_, number) => randomLeases(random, `key-${number}`)).flat();
    const { ownKeys, porcupineKeys, unknown } = judgeByBoth(processes);
    expect(porcupineKeys).toEqual(ownKeys);
    expect(unknown).toEqual([]);
    expect(ownKeys.length).toBeGreaterThan(300);
    expect(ownKeys.length).toBeLessThan(2_700);
  });
});
