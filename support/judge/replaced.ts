import type { WorkerRecord } from './records';

/** ms in which Redis may execute what a call sent that has ended without a lease. */
const LATE = 5_000;
/** ms after its end in which a process counts as one that hears: Redis has not seen that its connections are over. */
const HEARS_YET = 3_000;

/**
 * What a history with `replace` must satisfy (P14):
 *
 * - A lease ends before its time only by a call with `replace` for its key that was under way then, of the process that the
 *   loss names.
 * - Two tasks are at work at once only where such a call has waited for its grace, and the process of the first one was told:
 *   before its lease was given back, since it may have stood still, or been out of reach, for all of the grace. In a chain
 *   of such calls the first grace that is over counts: the last one begins then, also in the place of one that left.
 * - So of a chain of such calls only the last can begin: the others are never granted.
 */
export interface Replaced {
  /** A call explains that the lease was lost before its time. */
  readonly isExplained: boolean;
  /** Its next holder waits for the end of its task: of several keys that are lost together, each may be free before. */
  readonly isFollowed: boolean;
  /** The earliest time at which such a call may enter though the task has not ended. */
  readonly graceOver: number;
}

type Recorded<Event extends WorkerRecord['event']> = Extract<WorkerRecord, { event: Event }>;

interface Ended {
  readonly called: Recorded<'called'>;
  granted?: number;
  lost?: Recorded<'lost'>;
  /** Its end, as its unlock began. */
  overAt?: number;
  settled?: Recorded<'settled'>;
  readonly process: { lastAt: number };
}

/** The leases that were replaced, or may have been, by call. One that Redis has unlocked for its owner was not. */
export function replacedIn(processes: readonly (readonly WorkerRecord[])[]): ReadonlyMap<string, Replaced> {
  const calls = processes.flatMap(endsOf);
  const takers = calls.filter(({ called }) => called.grace !== undefined);
  const replaced = new Map<string, Replaced>();
  if (takers.length === 0) return replaced;
  for (const ended of calls) {
    const { called, granted, lost, settled, process } = ended;
    if (granted === undefined || isUnlockedByRedis(ended)) continue;
    const over = settled?.at ?? process.lastAt + HEARS_YET;
    const possible = takers.filter(
      (taker) =>
        taker.called !== called &&
        [called.key, ...called.others].includes(taker.called.key) &&
        taker.called.at <= over &&
        (taker.granted ?? (taker.settled?.at ?? Number.POSITIVE_INFINITY) + LATE) >= called.at,
    );
    const takenBy = possible.filter((taker) => taker.called.at <= (lost?.at ?? over));
    if (takenBy.length === 0) continue;
    const isOf = ({ call }: Recorded<'called'>, name: string) => call.slice(0, call.lastIndexOf('-')) === name;
    replaced.set(called.call, {
      isExplained: takenBy.some((taker) => lost?.by === undefined || isOf(taker.called, lost.by)),
      isFollowed: called.others.length === 0,
      graceOver: Math.min(
        ...possible.map((taker) => Math.max(taker.called.at, called.at) + (taker.called.grace as number)),
      ),
    });
  }
  return replaced;
}

/** An unlock also ends without an answer, once its lease is over: of a process that is out of reach. */
function isUnlockedByRedis({ overAt = 0, settled }: Ended): boolean {
  return settled?.outcome === 'unlocked' && settled.at < overAt;
}

/** The calls of one process, with what became of them. */
function endsOf(records: readonly WorkerRecord[]): Ended[] {
  const process = { lastAt: 0 };
  const calls = new Map<string, Ended>();
  for (const record of records) {
    process.lastAt = Math.max(process.lastAt, 'sample' in record ? record.sample.to : record.at);
    if (record.event === 'called') calls.set(record.call, { called: record, process });
    const ended = 'call' in record ? calls.get(record.call) : undefined;
    if (ended === undefined) continue;
    if (record.event === 'granted') ended.granted = record.sample.to;
    if (record.event === 'lost') ended.lost = record;
    if (record.event === 'unlocking') ended.overAt = record.sample.from + record.sample.remaining;
    if (record.event === 'settled') ended.settled = record;
  }
  return [...calls.values()];
}
