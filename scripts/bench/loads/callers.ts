import type { Locks } from '../candidates/candidate';
import { now, sleep } from '../clock';
import type { Acquisition, Observe } from './load';

export interface CallersSettings {
  readonly callers: number;
  /** Number of keys that the callers are distributed over. */
  readonly keys: number;
  /** ms in the section, and a random addition of up to `workJitter`. 0: one microtask, in which an overlap would show. */
  readonly work: number;
  readonly workJitter: number;
  /** How many may be inside at a time; 1 by default. */
  readonly permits?: number;
  /** ms from a release to the next request, and a random addition of up to `pauseJitter`, 0 by default. */
  readonly pause: number;
  readonly pauseJitter?: number;
}

type MutableAcquisition = { -readonly [Key in keyof Acquisition]: Acquisition[Key] };

const NOT_YET = Number.POSITIVE_INFINITY;

/** Callers that lock, work and unlock in a loop. Every acquisition is recorded. */
export function callers(
  locks: Locks,
  { callers, keys, work, workJitter, pause, pauseJitter = 0, permits = 1 }: CallersSettings,
): Observe {
  let log: MutableAcquisition[] = [];
  const waiting = new Set<MutableAcquisition>();
  const inside = new Map<string, number>();
  let violations = 0;

  const acquireOnce = async (caller: number) => {
    const key = `key-${caller % keys}`;
    const acquisition: MutableAcquisition = { caller, requestedAt: now(), enteredAt: NOT_YET, leftAt: NOT_YET };
    waiting.add(acquisition);
    const release = await locks.acquire(key);
    acquisition.enteredAt = now();
    waiting.delete(acquisition);
    log.push(acquisition);

    const others = inside.get(key) ?? 0;
    if (others >= permits) violations++;
    inside.set(key, others + 1);
    await (work === 0 ? undefined : sleep(work + Math.random() * workJitter));
    inside.set(key, (inside.get(key) ?? 0) - 1);

    acquisition.leftAt = now();
    await release();
  };
  const loop = async (caller: number) => {
    for (;;) {
      await acquireOnce(caller);
      if (pause > 0) await sleep(pause + Math.random() * pauseJitter);
    }
  };
  // A rejection is not handled: it ends the process, and with it the measurement.
  for (let caller = 0; caller < callers; caller++) void loop(caller);

  return async (ms) => {
    log = [];
    await sleep(ms);
    return { acquisitions: [...log, ...waiting], violations };
  };
}
