import type { WorkerRecord } from '../judge/records';

/** ms in which a living process has removed what a call left behind it, whatever fault there is. */
const CLEANED_WITHIN = 10_000;

/**
 * The keys of the calls that a process had not ended when it was killed, and of those that it had ended shortly before.
 * Those may have left something in Redis too, and what removes it died with the process: a refused call its position in
 * the queue, and an unlocked one an attempt whose answer was lost.
 */
export function unfinishedKeys(records: readonly WorkerRecord[], killedAt: number): string[] {
  const unfinished = new Map<string, readonly string[]>();
  for (const record of records) {
    if (record.event === 'called') unfinished.set(record.call, [record.key, ...record.others]);
    if (record.event === 'settled' && killedAt - record.at > CLEANED_WITHIN) unfinished.delete(record.call);
  }
  return [...new Set([...unfinished.values()].flat())];
}
