import type { WorkerRecord } from '../judge/records';

/** ms in which a living process has removed what a call left behind it, whatever fault there is. */
const CLEANED_WITHIN = 10_000;

/**
 * The keys of the calls that have left before the grace was over, or may have, shortly before their registry was closed: the
 * lock stays taken until the task before has ended, and what frees it then ends with the client.
 */
export function keysLeftInGrace(records: readonly WorkerRecord[], closedAt: number): string[] {
  const granted = new Set(records.flatMap((record) => (record.event === 'granted' ? [record.call] : [])));
  const taking = new Set(
    records.flatMap((one) =>
      one.event === 'called' && one.grace !== undefined && !granted.has(one.call) ? [one.call] : [],
    ),
  );
  return unfinishedKeys(
    records.filter((record) => 'call' in record && taking.has(record.call)),
    closedAt,
  );
}

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
