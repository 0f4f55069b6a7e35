import { historyOf } from './history';
import { leasesIn } from './leases';
import { judgeWithPorcupine } from './porcupine';
import { PERMITS, type WorkerRecord } from './records';
import { exclusionViolations, TokenJudge } from './violations';

/** What the two judges say of one history. */
export interface Judgement {
  readonly leases: number;
  readonly keys: number;
  /** What the soak's own judge found, in words. */
  readonly own: readonly string[];
  /** Keys that the own judge rejects, and those that Porcupine rejects. */
  readonly ownKeys: readonly string[];
  readonly porcupineKeys: readonly string[];
  /** Keys for which Porcupine had not enough time. */
  readonly unknown: readonly string[];
}

/** The records of each process of one history. */
export function judgeByBoth(processes: readonly (readonly WorkerRecord[])[], html?: string): Judgement {
  const leases = leasesIn(processes);
  const isFenced = leases.some(({ token }) => token !== undefined);
  const violations = [...exclusionViolations(leases), ...(isFenced ? new TokenJudge().violations(leases) : [])];
  const verdicts = judgeWithPorcupine(historyOf(processes), PERMITS, html);
  const keysWith = (result: string) => verdicts.filter((one) => one.result === result).map(({ key }) => key);
  return {
    leases: leases.length,
    keys: verdicts.length,
    own: violations.map(({ kind, text }) => `${kind}: ${text}`),
    ownKeys: [...new Set(violations.map(({ key = '?' }) => key))].sort(),
    porcupineKeys: keysWith('Illegal'),
    unknown: keysWith('Unknown'),
  };
}
