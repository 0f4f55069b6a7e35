import { type LockType, type Plan, planOf } from './plan';
import { EXTRAS_ON, type Extra } from './plan-extras';
import { type LibraryInstance, libraryLoader } from './process/library';
import type { ScriptEngine } from './server/script-engine';
import { type Outcome, Simulation } from './simulation';
import { StateChanges } from './state-changes';
import type { Violations } from './violations';

/** Processes of one simulation at most. */
const MOST_PROCESSES = 4;

/** Runs simulations one after the other, with the same module instances of the library. */
export class Simulator {
  readonly stateChanges = new StateChanges();
  readonly #extras: readonly Extra[];
  readonly #instances: readonly LibraryInstance[];
  readonly #engine: ScriptEngine;
  #violations: Violations | undefined;
  readonly #onUnhandled = (error: unknown): void => {
    this.#violations?.report('unhandled rejection', '', error instanceof Error ? (error.stack ?? '') : String(error));
  };

  /** `bundle`: the library as one text, see `bundleLibrary`. `extras`: those that a seed may have. */
  constructor(bundle: string, engine: ScriptEngine, extras = EXTRAS_ON) {
    this.#extras = extras;
    const load = libraryLoader(bundle);
    this.#instances = Array.from({ length: MOST_PROCESSES }, () => load());
    for (const { states } of this.#instances) this.stateChanges.count(states);
    this.#engine = engine;
    process.on('unhandledRejection', this.#onUnhandled);
  }

  close(): void {
    process.off('unhandledRejection', this.#onUnhandled);
  }

  runSeed(seed: number, lockType: LockType, isRecorded = false, isTraced = false): Promise<Outcome> {
    return this.run(planOf(seed, lockType, this.#extras), isRecorded, isTraced);
  }

  run(plan: Plan, isRecorded = false, isTraced = false): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      // Microtasks are drained inside: that is only possible outside of one.
      setImmediate(() => {
        try {
          const services = { instances: this.#instances, engine: this.#engine };
          const simulation = new Simulation(plan, { ...services, isRecorded, isTraced });
          this.#violations = simulation.violations;
          resolve(simulation.run());
        } catch (error) {
          reject(error);
        }
      });
    });
  }
}
