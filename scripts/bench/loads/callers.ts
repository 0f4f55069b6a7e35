import type { Locks } from '../candidates/candidate';
import { now, sleep } from '../clock';
import type { Observe, Passage } from './load';

export interface CallersSettings {
  readonly callers: number;
  /** Over how many keys they are spread. */
  readonly keys: number;
  /** ms in the section, and up to how many more at random. 0: one microtask, in which an intruder would show. */
  readonly work: number;
  readonly workJitter: number;
  /** ms from a release to the next question. */
  readonly pause: number;
}

type Notes = { -readonly [Key in keyof Passage]: Passage[Key] };

const NOT_YET = Number.POSITIVE_INFINITY;

/** Callers that take a lock, work and give it back, again and again; every passage is noted. */
export function callers(locks: Locks, { callers, keys, work, workJitter, pause }: CallersSettings): Observe {
  let log: Notes[] = [];
  const waiting = new Set<Notes>();
  const inside = new Map<string, number>();
  let violations = 0;

  const pass = async (caller: number) => {
    const key = `key-${caller % keys}`;
    const notes: Notes = { caller, asked: now(), entered: NOT_YET, left: NOT_YET };
    waiting.add(notes);
    const release = await locks.acquire(key);
    notes.entered = now();
    waiting.delete(notes);
    log.push(notes);

    const company = inside.get(key) ?? 0;
    if (company > 0) violations++;
    inside.set(key, company + 1);
    await (work === 0 ? undefined : sleep(work + Math.random() * workJitter));
    inside.set(key, (inside.get(key) ?? 0) - 1);

    notes.left = now();
    await release();
  };
  const live = async (caller: number) => {
    for (;;) {
      await pass(caller);
      if (pause > 0) await sleep(pause);
    }
  };
  // A rejection is nobody's to handle: it ends the process, and so the measurement.
  for (let caller = 0; caller < callers; caller++) void live(caller);

  return async (ms) => {
    log = [];
    await sleep(ms);
    return { passages: [...log, ...waiting], violations };
  };
}
