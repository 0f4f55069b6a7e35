import { AsyncLocalStorage } from 'node:async_hooks';
import type { DistributedLock, Lease, LockOptions } from '../../lib';
import { abortReason } from '../abort-reasons';
import { applyFault } from './apply-fault';
import type { CallChecks, PendingCall } from './checks/calls';
import type { LeaseChecks, OpenLease, OwnedLease } from './checks/leases';
import type { OrderChecks } from './checks/order';
import type { SharedOrderChecks } from './checks/shared-order';
import type { StepChecks } from './checks/steps';
import type { Heirs } from './heirs';
import { lockOf } from './host';
import type { CallerPlan, Round } from './plan';
import type { Moment } from './plan-faults';
import type { LibraryInstance } from './process/library';
import { type Host, isBlockedSince, lockName, type World } from './world';

/** Whose code runs: what the library calls back must not run in the context of another caller. */
const context = new AsyncLocalStorage<string>();

/** What all callers share. */
interface CallerServices {
  readonly world: World;
  readonly leases: LeaseChecks;
  readonly calls: CallChecks;
  readonly order: OrderChecks;
  readonly sharedOrder: SharedOrderChecks;
  readonly steps: StepChecks;
  readonly heirs: Heirs;
}

/** A script of the application's. It says whose it is, and which one of its caller. */
export const EVALUATED = 'return ARGV[1]';

/** One task of an application: it takes a lock, holds it for a while, and gives it back, a few times. */
export class Caller {
  isDone = false;
  readonly name: string;
  /** All of them, for messages. */
  readonly #key: string;
  readonly #plan: CallerPlan;
  readonly #world: World;
  readonly #host: Host;
  readonly #library: LibraryInstance['library'];
  readonly #leases: LeaseChecks;
  readonly #calls: CallChecks;
  readonly #order: OrderChecks;
  /** Those that it has sent. */
  #scripts = 0;
  readonly #sharedOrder: SharedOrderChecks;
  readonly #steps: StepChecks;
  readonly #heirs: Heirs;

  constructor(
    name: string,
    plan: CallerPlan,
    host: Host,
    library: LibraryInstance['library'],
    { world, leases, calls, order, sharedOrder, steps, heirs }: CallerServices,
  ) {
    this.name = name;
    this.#plan = plan;
    this.#key = plan.keys.join(' + ');
    this.#host = host;
    this.#library = library;
    this.#world = world;
    this.#leases = leases;
    this.#calls = calls;
    this.#order = order;
    this.#sharedOrder = sharedOrder;
    this.#steps = steps;
    this.#heirs = heirs;
  }

  /** Its process runs. */
  get isAlive(): boolean {
    return this.#host.process.isAlive;
  }

  start(): void {
    void context.run(this.name, () => this.#run());
  }

  async #run(): Promise<void> {
    for (const round of this.#plan.rounds) {
      await this.#sleep(round.think);
      if (this.#host.closing !== 'no') break;
      await this.#attempt(round);
    }
    this.isDone = true;
  }

  async #attempt(round: Round): Promise<void> {
    const controller = round.abortAfter === undefined ? undefined : new AbortController();
    const call = this.#calls.begin(this.name, this.#host, this.#plan.keys, round);
    this.#note(
      () => `${round.method}${round.kind === undefined ? '' : ` ${round.kind}`}("${this.#key}"${describe(round)})`,
    );
    this.#host.counts.calls++;
    this.#reached('call', round);
    if (controller !== undefined) this.#abortLater(controller, call, round.abortAfter ?? 0);
    if (round.asks === true) void this.#ask(round);
    try {
      if (round.method === 'run') await this.#runTask(round, call, controller);
      else await this.#lockAndUnlock(round, call, controller);
    } catch (error) {
      this.#failed(error, call, controller?.signal);
    }
  }

  async #lockAndUnlock(round: Round, call: PendingCall, controller: AbortController | undefined): Promise<void> {
    const lock = this.#lock(round);
    const lease = await lock[round.method as 'lock' | 'tryLock'](options(round, controller));
    this.#calls.end(call, lease === null);
    if (lease === null) {
      this.#note(() => `"${this.#key}" is held by another`);
      return;
    }
    const open = this.#opened(lease, round, call);
    this.#reached('lease', round);
    try {
      await this.#hold(round, lease, call);
    } finally {
      this.#reached('unlock', round);
      if (round.travels === undefined) await this.#unlock(lease, open);
      else await this.#detach(lease, open, round);
    }
  }

  async #runTask(round: Round, call: PendingCall, controller: AbortController | undefined): Promise<void> {
    const lock = this.#lock(round);
    let open: readonly OpenLease[] = [];
    try {
      await lock.run(
        async (lease) => {
          this.#calls.end(call, false);
          open = this.#opened(lease, round, call);
          await this.#hold(round, lease, call);
          // The lease is given back as soon as the task is over.
          this.#note(() => `ends its task under "${this.#key}"`);
        },
        options(round, controller),
      );
    } finally {
      for (const one of open) this.#leases.closed(one);
    }
  }

  #lock(round: Round): DistributedLock {
    const { keys } = this.#plan;
    if (round.kind === 'semaphore') this.#world.permits.given(this.#host, keys[0] ?? '', round.permits);
    return lockOf(this.#host, keys, round, this.#world.plan.lockType);
  }

  /** A lock of several keys gives a lease of each. */
  #opened(lease: Lease, round: Round, call: PendingCall): OpenLease[] {
    return partsOf(lease).map((part) => this.#openedPart(part, part.key, round, call));
  }

  #openedPart(lease: Lease, key: string, round: Round, { startedAt }: PendingCall): OpenLease {
    const token = lease.fencingToken === undefined ? '' : `, token ${lease.fencingToken}`;
    const { remaining } = lease;
    const { minHold } = round;
    this.#note(() => `has "${key}" for ${remaining.toFixed(1)} ms${token}`);
    const open = this.#leases.opened(lease as OwnedLease, this.#host, key, this.name, round);
    if (open.isPassedOn) this.#order.passedOn(this.#host, lockName(key), startedAt, this.name);
    if (round.kind === 'read') this.#sharedOrder.read(open, startedAt);
    if (minHold !== undefined) this.#leases.minHolds.opened(open.lease, this.#host, key, this.name, minHold);
    lease.signal.addEventListener('abort', () => {
      const found = context.getStore();
      if (found === undefined || found === this.name) return;
      const text = `an abort listener of ${this.name} ran in the context of ${found}`;
      this.#world.violations.report('foreign context', this.name, text);
    });
    return open;
  }

  async #hold(round: Round, lease: Lease, call: PendingCall): Promise<void> {
    const { process } = this.#host;
    if (round.block > 0) {
      this.#note(() => `blocks its event loop for ${round.block.toFixed(0)} ms`);
      await process.block(round.block);
      const { remaining } = lease;
      const state = isHeld(lease) ? 'held' : 'not held';
      this.#note(() => `computes no more, remaining ${remaining.toFixed(1)} ms, ${state}`);
    }
    if (round.evals === 'first') this.#evaluate(lease);
    if (round.renews) void this.#renew(lease, call);
    for (let left = round.hold; left > 0; left -= round.chunk || left) {
      if (round.chunk > 0) await process.block(round.chunk);
      if (round.heeds !== undefined) await this.#sleepUnlessStopped(lease, left, round.heeds);
      else await this.#sleep(round.chunk > 0 ? 1 : left);
    }
    if (round.evals === 'last') this.#evaluate(lease);
  }

  async #renew(lease: Lease, { startedAt }: PendingCall): Promise<void> {
    const { process } = this.#host;
    // It has no `remaining` until Redis confirms it (P12), and its renewal does.
    const isUnconfirmed = lease.remaining === 0 && process.lastJumped >= startedAt;
    // The renewal of each key has what is left of that key.
    const within = isUnconfirmed ? this.#commandTimeout : Math.max(...partsOf(lease).map(({ remaining }) => remaining));
    const step = this.#steps.begin(this.name, 'the renewal', this.#host, within);
    try {
      await lease.renew();
    } catch (error) {
      this.#note(() => String(error));
    } finally {
      this.#steps.end(step);
    }
  }

  #evaluate(lease: Lease): void {
    const script = lease.eval(EVALUATED, { arguments: [`${this.name}#${++this.#scripts}`] });
    script.catch((error) => this.#note(() => String(error)));
  }

  async #ask(round: Round): Promise<void> {
    const [key = ''] = this.#plan.keys;
    const before = this.#leases.replacements.holders(key);
    try {
      const isHeard = await this.#lock(round).ask(this.name);
      this.#note(() => `asks for "${key}": ${isHeard ? 'heard' : 'not heard'}`);
      if (isHeard) this.#leases.replacements.asked(key, before);
    } catch (error) {
      this.#note(() => String(error));
    }
  }

  async #unlock(lease: Lease, open: readonly OpenLease[]): Promise<void> {
    this.#note(() => `unlocks "${this.#key}"`);
    const step = this.#steps.begin(this.name, 'the unlock', this.#host, this.#commandTimeout);
    try {
      await lease.unlock();
      this.#note(() => `unlocked "${this.#key}"`);
    } finally {
      this.#steps.end(step);
      for (const one of open) this.#leases.closed(one);
    }
  }

  async #detach(lease: Lease, open: readonly OpenLease[], round: Round): Promise<void> {
    this.#note(() => `detaches "${this.#key}"`);
    const { now } = this.#world.timeline;
    const step = this.#steps.begin(this.name, 'detach()', this.#host, this.#commandTimeout);
    try {
      const text = await lease.detach();
      this.#note(() => `detached "${this.#key}"`);
      this.#heirs.follow(text, lease, this.name, round, now);
    } finally {
      this.#steps.end(step);
      for (const one of open) this.#leases.closed(one);
    }
  }

  /** ms in which a command is answered, or fails. */
  get #commandTimeout(): number {
    return this.#host.registryOptions.commandTimeout ?? 5_000;
  }

  #reached(moment: Moment, { aimed }: Round): void {
    if (aimed?.on !== moment) return;
    this.#world.timeline.after(aimed.after, () => applyFault(this.#world, this.#leases, aimed.fault));
  }

  #abortLater(controller: AbortController, call: PendingCall, ms: number): void {
    this.#host.process.setTimeout(() => {
      if (!this.#calls.pending.has(call)) return;
      call.abortedAt = this.#world.timeline.now;
      const { reason } = call.round;
      this.#note(() => `aborts its wait for "${this.#key}"${reason === 'error' ? '' : ` with ${reason}`}`);
      controller.abort(abortReason(reason, this.#library));
    }, ms);
  }

  #failed(error: unknown, call: PendingCall, signal: AbortSignal | undefined): void {
    const {
      CannotAcquireLockError,
      LockTimeoutError,
      LockLostError,
      LockReleaseError,
      LockError,
      RegistryClosedError,
    } = this.#library;
    const { violations, plan, timeline } = this.#world;
    const wasPending = this.#calls.pending.has(call);
    const isAborted = call.abortedAt !== undefined && error === signal?.reason;
    if (wasPending) this.#calls.end(call, error instanceof LockTimeoutError && !isAborted, true);
    this.#note(() => `${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`);
    if (isAborted) return;
    if (!(error instanceof LockError)) {
      violations.report('strange error', this.name, error instanceof Error ? (error.stack ?? '') : String(error));
      return;
    }
    if (!plan.isCalm || error instanceof LockTimeoutError || error instanceof RegistryClosedError) return;
    const isOverstayed = error instanceof LockLostError && (call.round.ttl !== undefined || error.reason === 'closed');
    // A release has as long as was left of its lease, and its event loop was blocked for longer.
    const isOutlasted = error instanceof LockReleaseError && timeline.now - this.#host.lastPaused < 1_000;
    // No block is as long as the silence that ends a wait without a limit.
    const isBlocked =
      error instanceof CannotAcquireLockError &&
      call.waitTime < Number.POSITIVE_INFINITY &&
      isBlockedSince(this.#host, call.startedAt);
    if (isOverstayed || isOutlasted || isBlocked || this.#host.closing !== 'no') return;
    violations.report('failed though calm', this.name, `${this.name}: ${error.name}: ${error.message}`);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      // A timer of the application, and not one that the library has left.
      this.#host.process.setTimeout(resolve, ms).unref();
    });
  }

  /** For `ms`, or until `after` ms after the task is to stop. */
  #sleepUnlessStopped({ signal, asked }: Lease, ms: number, after: number): Promise<void> {
    return new Promise((resolve) => {
      void this.#sleep(ms).then(resolve);
      for (const one of [signal, asked]) {
        const stops = (): void => void this.#sleep(after).then(resolve);
        if (one.aborted) stops();
        else one.addEventListener('abort', stops, { once: true });
      }
    });
  }

  #note(text: () => string): void {
    this.#world.history.note(this.name, text);
  }
}

/** The leases of a lock of several keys; else the lease itself. */
function partsOf(lease: Lease): readonly Lease[] {
  return 'leases' in lease ? (lease.leases as readonly Lease[]) : [lease];
}

/** As an application asks after it has computed for long. */
function isHeld(lease: Lease): boolean {
  try {
    lease.assertHeld();
    return true;
  } catch {
    return false;
  }
}

function options(
  { ttl, renew, waitTime, minHold, takes, grace }: Round,
  controller: AbortController | undefined,
): LockOptions {
  return {
    ...(ttl === undefined ? {} : { ttl }),
    ...(renew === undefined ? {} : { renew }),
    ...(waitTime === undefined ? {} : { waitTime }),
    ...(minHold === undefined ? {} : { minHold }),
    ...(takes === 1 ? {} : { permits: takes }),
    ...(grace === undefined ? {} : { replace: true, grace }),
    ...(controller === undefined ? {} : { signal: controller.signal }),
  };
}

function describe({ ttl, renew, waitTime, minHold, takes, grace }: Round): string {
  const permits = takes === 1 ? undefined : takes;
  const given = Object.entries({ ttl, renew, waitTime, minHold, permits, grace }).filter(
    ([, value]) => value !== undefined,
  );
  return given.map(([name, value]) => `, ${name} ${value}`).join('');
}
