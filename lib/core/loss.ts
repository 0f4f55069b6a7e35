import type { LockLostReason } from '../api/distributed-lock';
import { LockLostError } from '../api/errors';
import { nameIn } from '../api/owner-name';
import { CapturedContext } from '../internal/clock';
import { causeOf, reasonOf } from '../redis/failure';

/** What is known of a loss beside its reason. */
export interface LossDetails {
  /**
   * `ttl over`: it was not to be renewed, and its ttl has ended. `not asked`: no renewal was sent in time, as by a process
   * that stood still. `not confirmed`: a renewal failed, or was not answered in time. `suspended`: the machine was, and the
   * lease was not confirmed since.
   */
  readonly how: 'ttl over' | 'not asked' | 'not confirmed' | 'suspended';
  /** What the last renewal failed with, if it failed. */
  readonly cause?: unknown;
}

/** By whom holds were taken, where their process was told: an owner value of who did it. */
export const takers = new WeakMap<object, string>();

/** ms; a ttl below is said in the error. */
const SHORT = 1_000;

/** The lease that was lost. */
interface Lost {
  readonly key: string;
  /** ms */
  readonly ttl: number;
  readonly hold: object;
}

/** The error of a loss. `connection`: where it was lost for want of an answer, its last error may say why. */
export function lossError(
  { key, ttl, hold }: Lost,
  reason: LockLostReason,
  details: LossDetails | undefined,
  connection: { readonly lastError: unknown },
  result: unknown,
  options: ErrorOptions = {},
): LockLostError {
  const taker = takers.get(hold);
  if (details === undefined) return new LockLostError(key, reason, result, { by: taker && nameIn(taker), ...options });
  const cause = details.how === 'not confirmed' ? causeOf(details.cause, connection) : undefined;
  const own = cause === undefined ? {} : { cause };
  return new LockLostError(key, reason, result, { ...own, ...options, why: explained(details.how, ttl, cause) });
}

function explained(how: LossDetails['how'], ttl: number, cause: unknown): string {
  if (how === 'ttl over')
    return `its ttl of ${ttl} ms was over, and it was not to be renewed: see \`renew\` and \`maxHold\``;
  // A caller that gives seconds in place of ms loses a lease at once, and wonders.
  const short = ttl < SHORT ? `; its ttl was ${ttl} ms` : '';
  if (how === 'not asked') {
    return `it was not renewed in time: this process stood still, or its event loop was blocked${short}`;
  }
  if (how === 'suspended')
    return 'the machine was suspended, or its clock was set, and Redis has not confirmed it since';
  const late = 'Redis did not confirm it in time';
  return (cause === undefined ? late : `${late} (${reasonOf(cause)})`) + short;
}

/**
 * The signal that aborts when a lease is lost. Its listeners run in the async context in which the signal was first
 * asked for, and never in the context of the code that finds the loss.
 */
export class LossSignal extends CapturedContext {
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.runInAsyncScope(() => this.#controller.abort(reason));
  }
}
