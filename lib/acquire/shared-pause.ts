import { clock } from '../internal/clock';

/** ms; pauses that begin within this time end together. */
const TOGETHER = 10;

/**
 * A pause that many callers make at about the same time. It ends for all of them at once, so that what they send then
 * goes to Redis together. Each with a timer of its own, their attempts would go one by one.
 */
export class SharedPause {
  /** ms; the pause of each caller is at least this long. */
  readonly least: number;
  #resumes = new Set<() => void>();
  /** On the monotonic clock: from then on, another pause begins. */
  #joinableUntil = Number.NEGATIVE_INFINITY;

  constructor(least: number) {
    this.least = least;
  }

  /** ms; the pause of each caller is at most this long. */
  get longest(): number {
    return this.least + TOGETHER;
  }

  /** Calls `resume` at the end of the pause. Returns the function with which the caller leaves. */
  join(resume: () => void): () => void {
    const now = clock.now();
    if (now >= this.#joinableUntil) this.#begin(now);
    const resumes = this.#resumes;
    resumes.add(resume);
    return () => void resumes.delete(resume);
  }

  #begin(now: number): void {
    const resumes = new Set<() => void>();
    this.#resumes = resumes;
    this.#joinableUntil = now + TOGETHER;
    clock.setTimeout(() => {
      for (const resume of resumes) resume();
    }, this.longest);
  }
}
