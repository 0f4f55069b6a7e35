import { setTimeout as sleep } from 'node:timers/promises';
import {
  CannotAcquireLockError,
  type Lease,
  LockInspectionError,
  LockLostError,
  LockReleaseError,
  LockTimeoutError,
  type RedisLockRegistry,
  RegistryClosedError,
} from '../../../lib';
import { ABORT_REASONS, abortReason } from '../../abort-reasons';
import type { Access } from '../../judge/exclusion';
import { type Outcome, PERMITS } from '../../judge/records';
import type { Random } from '../../random';
import { sharedNow } from '../awake-clock';
import {
  isReplaceable,
  LONGEST_WAIT,
  ONCE_KEY,
  registryOptions,
  type SoakExtra,
  type SoakType,
  shareOfSeveral,
} from '../settings';
import type { Gate } from './gate';
import type { HeldLeases } from './held-leases';
import { lockFor, randomAccess } from './locks';
import type { PendingSteps } from './pending-steps';
import type { RecordFile } from './record-file';
import { type Request, randomRequest } from './requests';

/** ms after which a caller that was rejected by a closed registry tries again: there will be another registry. */
const ON_CLOSED = 200;

/** What the callers of one process share. */
export interface CallerServices {
  readonly gate: Gate;
  readonly steps: PendingSteps;
  readonly held: HeldLeases;
  readonly records: RecordFile;
  readonly type: SoakType;
  readonly extras: readonly SoakExtra[];
  registry(): RedisLockRegistry;
  nextCall(): string;
}

class Signal {
  send: () => void = () => {};
  readonly sent = new Promise<void>((resolve) => {
    this.send = resolve;
  });
}

/** One task of an application that takes locks, one after the other. */
export class Caller {
  readonly #services: CallerServices;
  readonly #random: Random;

  constructor(services: CallerServices, random: Random) {
    this.#services = services;
    this.#random = random;
  }

  async work(): Promise<void> {
    const { gate, type, extras } = this.#services;
    while (await gate.enter()) {
      try {
        if (extras.includes('callers of once leave') && this.#random.chance(0.3)) await this.#once();
        const outcome = await this.#call(randomRequest(this.#random, shareOfSeveral(type), isReplaceable(type)));
        await sleep(outcome === 'closed' ? ON_CLOSED : this.#random.whole(0, 30));
      } finally {
        gate.leave();
      }
    }
  }

  /** It leaves while others of its process may have joined it: their tasks run then, and not this one. */
  async #once(): Promise<void> {
    const { records, nextCall, registry } = this.#services;
    const call = nextCall();
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error(`${call} leaves`)), this.#random.whole(0, 300));
    const [work, waitTime] = [this.#random.whole(0, 150), this.#random.whole(20, LONGEST_WAIT)];
    let hasLeft = false;
    const task = async () => {
      if (hasLeft) records.violation('not once', `${call} has left, and its task runs`);
      await sleep(work);
    };
    try {
      await registry().once(ONCE_KEY, task, { keepFor: 20, waitTime, signal: stop.signal });
    } catch (error) {
      if (error !== stop.signal.reason && outcomeOf(error) === 'unexpected')
        records.violation('unexpected error', `${call} once: ${String(error)}`);
    } finally {
      hasLeft = true;
      clearTimeout(timer);
    }
  }

  async #call(request: Request): Promise<Outcome> {
    const { records, type, nextCall } = this.#services;
    const call = nextCall();
    const access = randomAccess(type, request.key, this.#random);
    const permits = access === 'permit' && this.#random.chance(0.2) ? PERMITS - 1 : 1;
    const together = request.others.map((other) => ` + ${other}`).join('');
    const what = `${request.method}${together} ${JSON.stringify(request.options)}`;
    const { key, others, options } = request;
    const { minHold, grace } = options;
    records.write({ event: 'called', call, key, others, access, permits, what, minHold, grace, at: sharedNow() });
    const stop = new AbortController();
    const reason = abortReason(this.#random.pick(ABORT_REASONS), { LockLostError, LockTimeoutError });
    const { abortAfter } = request;
    const timer = abortAfter === undefined ? undefined : setTimeout(() => stop.abort(reason), abortAfter);
    let outcome: Outcome;
    try {
      outcome = await this.#acquire(call, what, request, access, permits, stop.signal);
    } catch (error) {
      outcome = stop.signal.aborted && error === stop.signal.reason ? 'aborted' : outcomeOf(error);
      if (outcome === 'unexpected') records.violation('unexpected error', `${call} ${what}: ${String(error)}`);
    }
    clearTimeout(timer);
    records.write({ event: 'settled', call, outcome, at: sharedNow() });
    return outcome;
  }

  async #acquire(
    call: string,
    what: string,
    request: Request,
    access: Access,
    permits: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { steps, registry } = this.#services;
    const { key, others } = request;
    const lock = others.length === 0 ? lockFor(registry(), key, access) : registry().multi([key, ...others]);
    const options = { ...request.options, permits, signal };
    if (request.asks) await this.#ask(call, key);
    if (request.evicts) setTimeout(() => registry().expireUnusedOlderThan(-1), request.hold / 2);
    if (request.method === 'run') {
      await this.#run(call, what, request, (task) => lock.run(task, options), signal);
      return 'unlocked';
    }
    const lease = await steps.bounded(`${call} ${what}`, request.bound, lock[request.method](options), signal);
    if (lease === null) return 'refused';
    const promisedUntil = await this.#hold(call, request, lease);
    const unlocking = this.#judgeLoss(call, lease.unlock(), () => promisedUntil);
    await steps.bounded(`${call} unlock`, registryOptions.commandTimeout, unlocking);
    return 'unlocked';
  }

  /** Whatever it is answered, nothing is taken from anybody. */
  async #ask(call: string, key: string): Promise<void> {
    const { steps, records, registry } = this.#services;
    const asking = registry()
      .obtain(key)
      .ask(call)
      .catch((error: unknown) => {
        if (!(error instanceof LockInspectionError || error instanceof RegistryClosedError)) throw error;
        return false;
      });
    const isHeard = await steps.bounded(`${call} asks`, 2 * registryOptions.commandTimeout, asking);
    records.write({ event: 'asked', call, isHeard, at: sharedNow() });
  }

  /** `run` in its three parts: until the task begins, the task, and the release. */
  async #run(
    call: string,
    what: string,
    request: Request,
    run: (task: (lease: Lease) => Promise<void>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { steps } = this.#services;
    const begun = new Signal();
    const worked = new Signal();
    let promisedUntil = 0;
    const running = run(async (lease) => {
      begun.send();
      promisedUntil = await this.#hold(call, request, lease);
      worked.send();
    });
    const judged = this.#judgeLoss(call, running, () => promisedUntil);
    await steps.bounded(`${call} ${what}`, request.bound, Promise.race([begun.sent, judged]), signal);
    await Promise.race([worked.sent, judged]);
    await steps.bounded(`${call} the release of run`, registryOptions.commandTimeout, judged);
  }

  /** Rejects as `released` does. A release may find that the lease has ended before its time. */
  async #judgeLoss(call: string, released: Promise<void>, promisedUntil: () => number): Promise<void> {
    const { records } = this.#services;
    try {
      await released;
    } catch (error) {
      const at = sharedNow();
      const isOfRedis = error instanceof LockLostError && (error.reason === 'expired' || error.reason === 'stolen');
      const early = promisedUntil() - at;
      if (isOfRedis && early > 0) records.write({ event: 'lost', call, reason: error.reason, by: error.by, early, at });
      throw error;
    }
  }

  /** Resolves to when the lease would end that is about to be unlocked; 0: it is lost. */
  async #hold(call: string, request: Request, lease: Lease): Promise<number> {
    const { gate, held, steps } = this.#services;
    held.granted(call, request, lease);
    await gate.hold(request.hold, request.stops ? [lease.signal, lease.asked] : []);
    if (request.renews) {
      await steps.bounded(`${call} renew`, registryOptions.commandTimeout, lease.renew().catch(ignoreLoss));
    }
    held.unlocking(lease);
    return lease.signal.aborted ? 0 : sharedNow() + lease.remaining;
  }
}

/** The unlock that follows reports it. */
function ignoreLoss(error: unknown): void {
  if (!(error instanceof LockLostError || error instanceof CannotAcquireLockError)) throw error;
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof LockTimeoutError) return 'timed out';
  if (error instanceof CannotAcquireLockError) return 'unavailable';
  if (error instanceof RegistryClosedError) return 'closed';
  if (error instanceof LockLostError) return 'lost';
  return error instanceof LockReleaseError ? 'release unknown' : 'unexpected';
}
