import type { Lease, OnceOptions } from '../../lib';
import type { LeaseChecks, OwnedLease } from './checks/leases';
import { ONCE_KEY, type OnceCall, type Round } from './plan';
import type { Extra } from './plan-extras';
import type { LibraryInstance } from './process/library';
import { type Host, hostOf, isBlockedSince, lockName, ownerOf, quietFor, type World } from './world';

/** Where the result of all calls is. */
const RESULT = `{${lockName(ONCE_KEY)}}:once`;

/** ms in which a result that is there comes to its waiters: a poll of one that missed the message, and a round trip. */
const HAD_WITHIN = 1_500;

/** ms in which a task runs where nobody has the lock, and nothing is disturbed; and the claim window of each process. */
const RUN_WITHIN = 1_500;
const CLAIM_WINDOW = 1_100;

/** ms in which a result is kept and the lock released when the task has ended, and where something is disturbed. */
const KEPT_WITHIN = 200;
const KEPT_LATE = 8_000;

/** ms that a call may be late. */
const SLACK = 110;

interface Call {
  readonly name: string;
  readonly host: Host;
  readonly plan: OnceCall;
  readonly startedAt: number;
  /** When the first of the calls began that it may share its answer with. */
  readonly since: number;
  abortedAt: number | undefined;
}

/** One time that the task ran, or runs. Its result is its number. */
interface Run {
  readonly host: Host;
  /** The caller whose task it is. */
  readonly call: Call;
  readonly lease: OwnedLease;
  readonly begunAt: number;
  /** When the task ended; `undefined`: it runs. */
  endedAt: number | undefined;
  /** The task has failed, or its lease was lost. */
  failedAt: number;
  /** When Redis last had the lock for it: after the task until its result is kept, and the lock released. */
  ownedAt: number;
}

/** A result in Redis. */
interface Kept {
  readonly run: number;
  /** When it came, and when it was forgotten, or ended. */
  readonly from: number;
  until: number;
}

/** Tasks of several processes that call `once` for one key, and what each of them may get. */
export class OnceCallers {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #instances: readonly LibraryInstance[];
  readonly #pending = new Set<Call>();
  readonly #runs: Run[] = [];
  readonly #kept: Kept[] = [];
  /** When a process last knew that the result was forgotten. */
  readonly #forgottenAt = new Map<Host, number>();
  /** When the last `forget` was called that Redis has confirmed. */
  #forgottenSince = Number.NEGATIVE_INFINITY;
  /** When each process last had the lock, in Redis. */
  readonly #ownedAt = new Map<Host, number>();
  #begun = 0;
  /** Since when nobody has had the lock, or its result. */
  #idleSince = 0;

  constructor(world: World, leases: LeaseChecks, instances: readonly LibraryInstance[]) {
    this.#world = world;
    this.#leases = leases;
    this.#instances = instances;
  }

  start(): void {
    const { plan, timeline, hosts } = this.#world;
    for (const [i, call] of (plan.once?.calls ?? []).entries()) {
      const host = hosts[call.process] as Host;
      timeline.after(call.at, () => {
        this.#begun++;
        host.process.post('task', () => void this.#call(`${host.process.name}.o${i + 1}`, host, call));
      });
    }
    for (const { process, at } of plan.once?.forgets ?? []) {
      const host = hosts[process] as Host;
      timeline.after(at, () => host.process.post('task', () => void this.#forget(host)));
    }
  }

  get areDone(): boolean {
    return (
      this.#begun === (this.#world.plan.once?.calls.length ?? 0) &&
      [...this.#pending].every(({ host }) => !host.process.isAlive)
    );
  }

  isWaiting(host: Host): boolean {
    return [...this.#pending].some((call) => call.host === host);
  }

  /** After every script and event. */
  note(): void {
    const { server, timeline } = this.#world;
    const text = server.keys.kind(RESULT) === 'string' ? server.keys.get(RESULT, 'string') : undefined;
    const last = this.#kept.at(-1);
    const isKept = last?.until === Number.POSITIVE_INFINITY;
    const owner = ownerOf(server, lockName(ONCE_KEY));
    const holder = hostOf(this.#world, owner);
    if (holder !== undefined) this.#ownedAt.set(holder, timeline.now);
    for (const run of this.#runs) if (run.lease.owner === owner) run.ownedAt = timeline.now;
    if (text !== undefined || owner !== undefined) this.#idleSince = timeline.now;
    if (isKept && text === String(last.run)) return;
    if (isKept) last.until = timeline.now;
    if (text === undefined) return;
    this.#kept.push({ run: Number(text), from: timeline.now, until: Number.POSITIVE_INFINITY });
    const { lease, host, begunAt } = this.#runs[Number(text)] as Run;
    if (begunAt < this.#forgottenSince && !server.isSetBack)
      this.#report(`the result of ${host.process.name} is kept, whose task began before it was forgotten`);
    if (owner !== lease.owner)
      this.#report(`the result of ${host.process.name} is kept, and ${owner ?? 'nobody'} has its lock`);
  }

  /** Now and then. */
  check(): void {
    const { timeline, violations, hosts, plan, server } = this.#world;
    const kept = this.#kept.at(-1);
    for (const call of this.#pending) {
      const { host, startedAt, name } = call;
      if (!host.process.isAlive || host.process.isPaused) continue;
      this.#checkDeadline(call);
      if (this.#isRunning(host)) continue;
      const quiet = quietFor(this.#world, host);
      const since = kept?.until === Number.POSITIVE_INFINITY ? Math.max(kept.from, startedAt) : timeline.now;
      if (Math.min(timeline.now - since, quiet) > HAD_WITHIN)
        violations.report('late', name, `${name} has no result, which has been there for ${timeline.now - since} ms`);
      const bound = RUN_WITHIN + CLAIM_WINDOW * hosts.length;
      const isQueued = plan.processes.some(({ options }) => options.lockType === 'redisson-fair');
      if (isQueued || server.isSetBack || Math.min(timeline.now - Math.max(this.#idleSince, startedAt), quiet) <= bound)
        continue;
      violations.report('free lock left alone', name, `${name} waits, and nobody runs its task`);
    }
  }

  /** At the end. */
  checkSettled(): void {
    for (const { name, host } of this.#pending) {
      if (host.process.isAlive) this.#world.violations.report('not settled', name, `${name} still waits for a result`);
    }
  }

  async #call(name: string, host: Host, plan: OnceCall): Promise<void> {
    const { timeline } = this.#world;
    if (host.closing !== 'no') return;
    const startedAt = timeline.now;
    const others = [...this.#pending].filter((one) => one.host === host);
    const first = Math.min(startedAt, ...others.map(({ since }) => since));
    const since = Math.max(first, this.#forgottenAt.get(host) ?? 0);
    const call: Call = { name, host, plan, startedAt, since, abortedAt: undefined };
    const controller = new AbortController();
    this.#pending.add(call);
    host.counts.calls++;
    this.#note(name, 'calls once');
    if (plan.abortAfter !== undefined)
      host.process.setTimeout(() => {
        if (!this.#pending.has(call)) return;
        call.abortedAt = timeline.now;
        controller.abort(new Error('enough'));
      }, plan.abortAfter);
    const options: OnceOptions<number> = {
      keepFor: this.#world.plan.once?.keepFor ?? 0,
      signal: controller.signal,
      ...(plan.waitTime === undefined ? {} : { waitTime: plan.waitTime }),
    };
    try {
      const result = await host.registry.once(ONCE_KEY, (lease) => this.#run(name, call, lease), options);
      this.#note(name, `has the result of run ${result}`);
      this.#settled(call);
      const isOwn = this.#runs[result]?.call === call;
      if (!isOwn && !this.#kept.some(({ run, until }) => run === result && until >= since))
        this.#report(`${name} has the result of run ${result}, which was not in Redis while it waited`);
    } catch (error) {
      this.#note(name, String(error));
      this.#settled(call);
      this.#checkError(call, error, controller.signal);
    }
  }

  async #run(name: string, call: Call, lease: Lease): Promise<number> {
    const { host, plan } = call;
    const { timeline } = this.#world;
    const run: Run = {
      host,
      call,
      lease: lease as OwnedLease,
      begunAt: timeline.now,
      endedAt: undefined,
      failedAt: Number.NEGATIVE_INFINITY,
      ownedAt: timeline.now,
    };
    const number = this.#runs.push(run) - 1;
    this.#note(name, `begins run ${number}`);
    const round = { kind: undefined, takes: 1, ttl: undefined, renew: undefined } as Round;
    const open = this.#leases.opened(run.lease, host, ONCE_KEY, name, round);
    lease.signal.addEventListener('abort', () => {
      run.failedAt = timeline.now;
    });
    if (!this.#pending.has(call)) this.#report(`${name} runs its task, and has left`);
    const kept = this.#kept.at(-1);
    const isThere = kept !== undefined && kept.until === Number.POSITIVE_INFINITY;
    if (isThere && !open.isExcused && lease.remaining > 0)
      this.#report(`${name} runs its task, and the result of run ${kept.run} is there`);
    await new Promise<void>((resolve) => void host.process.setTimeout(resolve, plan.work));
    this.#leases.taskEnded(open);
    this.#note(name, `ends run ${number}`);
    run.endedAt = timeline.now;
    // Unconfirmed: nothing is kept under a lease that nobody may rely on.
    if (lease.remaining === 0) run.failedAt = timeline.now;
    if (!plan.fails) return number;
    run.failedAt = timeline.now;
    throw new Error('task failed');
  }

  async #forget(host: Host): Promise<void> {
    if (host.closing !== 'no') return;
    const name = host.process.name;
    const since = this.#world.timeline.now;
    host.counts.calls++;
    this.#note(name, 'forgets the result');
    try {
      await host.registry.forget(ONCE_KEY);
      this.#forgottenAt.set(host, this.#world.timeline.now);
      this.#forgottenSince = Math.max(this.#forgottenSince, since);
      this.#note(name, 'has forgotten the result');
    } catch (error) {
      this.#note(name, String(error));
      if (!(error instanceof this.#libraryOf(host).LockError)) this.#strange(name, error);
    }
  }

  #settled(call: Call): void {
    this.#pending.delete(call);
    this.#checkDeadline(call);
  }

  #checkDeadline({ name, host, plan, startedAt, abortedAt }: Call): void {
    const { timeline, violations } = this.#world;
    if (host.lastPaused >= startedAt) return;
    const isLate =
      !this.#isRunning(host) && timeline.now - startedAt > (plan.waitTime ?? Number.POSITIVE_INFINITY) + SLACK;
    if (isLate || timeline.now - (abortedAt ?? timeline.now) > SLACK)
      violations.report('late', name, `${name} called once at ${startedAt.toFixed(1)}, and should have left`);
  }

  /** What this seed is about. */
  #is(extra: Extra): boolean {
    return this.#world.plan.extra === extra;
  }

  /** Its task runs, or its result is kept at present: without an answer that is tried until the lease ends. */
  #isRunning(host: Host): boolean {
    const isDisturbed = quietFor(this.#world, host) < KEPT_LATE;
    const since = this.#world.timeline.now - (isDisturbed ? KEPT_LATE : KEPT_WITHIN);
    return this.#runs.some(({ host: its, endedAt = Number.POSITIVE_INFINITY, failedAt, ownedAt, lease }) => {
      if (its !== host) return false;
      if (Math.max(endedAt, failedAt) > since) return true;
      return isDisturbed && (ownedAt > since || host.process.observe(() => lease.remaining) > 0);
    });
  }

  #checkError({ name, host, plan, startedAt, since, abortedAt }: Call, error: unknown, signal: AbortSignal): void {
    const { timeline, violations, plan: all } = this.#world;
    const { CannotAcquireLockError, LockTimeoutError, LockLostError, LockError } = this.#libraryOf(host);
    if (abortedAt !== undefined && error === signal.reason) return;
    // As of an acquisition.
    const isBlocked =
      error instanceof CannotAcquireLockError && plan.waitTime !== undefined && isBlockedSince(host, startedAt);
    const hasFailed = this.#runs.some((run) => run.host === host && run.failedAt >= startedAt);
    if (error instanceof Error && error.message === 'task failed') {
      if (!hasFailed) this.#report(`${name} is told that its task has failed, which has not`);
      const isOfOneThatStayed = this.#runs.some(
        (run) =>
          run.failedAt >= startedAt &&
          run.host === host &&
          run.failedAt <= (run.call.abortedAt ?? Number.POSITIVE_INFINITY),
      );
      if (hasFailed && !isOfOneThatStayed) this.#report(`${name} is told of a task whose caller had left`);
    } else if (error instanceof LockTimeoutError) {
      if (timeline.now - startedAt < (plan.waitTime ?? Number.POSITIVE_INFINITY) * 0.999 - 2)
        this.#report(`${name} is told that its wait is over after ${timeline.now - startedAt} ms`);
    } else if (error instanceof LockLostError) {
      // It may have been lost while the result was looked for under it: then the task does not run.
      const hasRun = this.#runs.some((run) => run.host === host && run.begunAt >= startedAt);
      const hadLock = (this.#ownedAt.get(host) ?? Number.NEGATIVE_INFINITY) >= since;
      if (!hasFailed && (hasRun || !hadLock))
        this.#report(`${name} is told of a lost lock, and its process has lost none`);
    } else if (!(error instanceof LockError)) this.#strange(name, error);
    else if (this.#is('once in trouble') && this.#isTooEarly(host, plan, startedAt))
      this.#report(`${name} is rejected though it had time to wait: ${error.message}`);
    else if (all.isCalm && !isBlocked && host.closing === 'no')
      violations.report('failed though calm', name, String(error));
  }

  /** Redis may answer again before its time is over; and no task has run, whose result may not be kept. */
  #isTooEarly(host: Host, { waitTime = Number.POSITIVE_INFINITY }: OnceCall, startedAt: number): boolean {
    const { commandTimeout = 5_000, unavailableAfter = 10_000 } = host.registryOptions;
    const hasRun = this.#runs.some((run) => run.host === host && !((run.endedAt ?? startedAt) < startedAt));
    const isFinal = host.refusal !== undefined && /^(NOPERM|NOAUTH|OOM)/.test(host.refusal.error);
    const isExcused = hasRun || isFinal || host.closing !== 'no' || !host.client.isOpen || host.counts.reopened > 0;
    const least = Math.min(waitTime, commandTimeout, unavailableAfter);
    return !isExcused && this.#world.timeline.now - startedAt < 0.999 * least - SLACK;
  }

  #libraryOf({ index }: Host): LibraryInstance['library'] {
    return (this.#instances[index] as LibraryInstance).library;
  }

  #strange(name: string, error: unknown): void {
    this.#world.violations.report('strange error', name, error instanceof Error ? (error.stack ?? '') : String(error));
  }

  #report(text: string): void {
    this.#world.violations.report('not once', text, text);
  }

  #note(name: string, said: string): void {
    this.#world.history.note(name, () => said);
  }
}
