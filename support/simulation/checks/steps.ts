import { type Host, refusedFor, type World } from '../world';

/** What a caller does with its lease, until it has settled. */
export interface Step {
  readonly who: string;
  readonly what: string;
  readonly host: Host;
  readonly startedAt: number;
  /** ms in which it settles. */
  readonly within: number;
}

/** ms that a step may be late: timers, immediates and a round trip. */
const SLACK = 100;

/** ms in which it ends where Redis refuses it for good. */
const REFUSED_AT_ONCE = 300;

/** Steps settle by their deadline; where the answer is final, at once. */
export class StepChecks {
  readonly #world: World;
  readonly #pending = new Set<Step>();

  constructor(world: World) {
    this.#world = world;
  }

  begin(who: string, what: string, host: Host, within: number): Step {
    const step = { who, what, host, startedAt: this.#world.timeline.now, within };
    this.#pending.add(step);
    return step;
  }

  end(step: Step): void {
    this.#pending.delete(step);
    this.#check(step);
  }

  /** Now and then. */
  check(): void {
    for (const step of this.#pending) this.#check(step);
  }

  #check({ who, what, host, startedAt, within }: Step): void {
    const { timeline, violations } = this.#world;
    if (!host.process.isAlive || host.lastPaused >= startedAt) return;
    const ms = timeline.now - startedAt;
    if (ms > within * 1.001 + SLACK) violations.report('late', who, `${what} of ${who} takes ${ms.toFixed(0)} ms`);
    const refused = refusedFor(this.#world, host, startedAt);
    const text = `${what} of ${who} goes on for ${refused.toFixed(0)} ms though Redis refuses it`;
    if (refused > REFUSED_AT_ONCE) violations.report('late', who, text);
  }
}
