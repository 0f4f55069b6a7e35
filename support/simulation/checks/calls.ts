import type { SharedKind } from '../../../lib/api/lock-types';
import { isShared, keysOf, type Round } from '../plan';
import type { ScriptRun } from '../server/redis-server';
import { type Host, hostOf, lockName, ownerOf, quietFor, refusedFor, type World } from '../world';
import type { LeaseChecks } from './leases';
import { Vacancies } from './vacancies';
import { WaiterChecks } from './waiters';

/** A call of `lock`, `tryLock` or `run` between its beginning and its lease, or its error. */
export interface PendingCall {
  readonly caller: string;
  readonly host: Host;
  /** Several for a lock of several keys. */
  readonly keys: readonly string[];
  readonly round: Round;
  readonly startedAt: number;
  /** ms; `Infinity`: without a limit. */
  readonly waitTime: number;
  /** Another caller of its process was before it. */
  readonly isSecond: boolean;
  abortedAt: number | undefined;
}

/** ms in which a free lock is taken where somebody waits and nothing is disturbed. */
const TAKEN_WITHIN = 1_500;

/** ms since the last answer after which nobody may say that another holds the lock: every waiter asks once a second. */
const REFUSED_WITHIN = 2_000;

/** ms that a grant to a process which cannot take it may keep the lock, for each such process. */
const CLAIM_WINDOW = 1_100;

/** ms that the ticket of a process in the queue of a shared lock is kept, and until others find that it was dropped. */
const TICKET_LIFE = 4_200;

/** ms in which a process that nothing disturbs takes, or gives back, what it was granted. */
const CLAIMED_WITHIN = 500;

/** ms that a call may be late: timers, immediates and a round trip. */
const SLACK = 60;

/** ms in which a call ends that Redis refuses for good: it stands back before, or polls first. */
const REFUSED_AT_ONCE = 600;
const REFUSED_BY_POLL = 2_500;

/** ms that a lock of several keys has, when its time is over, to give locks back and to renew those that it has. */
const ROUND_TRIPS = 100;

/** ms that the first attempt of a wait has at least, and once more the repetition of a grant that came after a silence. */
const FIRST_ATTEMPT = 50;

/** Calls settle in time, waiters are served, and silence differs from contention. */
export class CallChecks {
  readonly pending = new Set<PendingCall>();
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #keys: readonly string[];
  readonly #vacancies: Vacancies;
  readonly #waiters: WaiterChecks;
  /** The first grant to each process that lay there since its message did not come. */
  readonly #unheard = new Map<Host, string>();
  readonly #unclaimed = new Map<string, { readonly owner: string | undefined; readonly since: number }>();

  constructor(world: World, leases: LeaseChecks) {
    this.#world = world;
    this.#leases = leases;
    this.#keys = keysOf(world.plan);
    this.#vacancies = new Vacancies(world, leases);
    this.#waiters = new WaiterChecks(world, leases);
  }

  begin(caller: string, host: Host, keys: readonly string[], round: Round): PendingCall {
    const waitTime = round.waitTime ?? (round.method === 'tryLock' ? 0 : Number.POSITIVE_INFINITY);
    const startedAt = this.#world.timeline.now;
    const isSecond =
      keys.some((key) => this.#isWaiting(host, key, startedAt)) || this.#lastHeld(host, keys) === startedAt;
    const call: PendingCall = { caller, host, keys, round, startedAt, waitTime, isSecond, abortedAt: undefined };
    this.pending.add(call);
    return call;
  }

  /** `isRefused`: it ended because somebody else is said to hold the lock. `failed`: without a lease. */
  end(call: PendingCall, isRefused: boolean, failed = isRefused): void {
    this.pending.delete(call);
    // One that did not wait left its number where nobody else waits.
    if (failed && (!isRefused || call.waitTime === 0))
      for (const key of call.keys) this.#world.permits.doubt(call.host, key);
    this.#checkDeadline(call);
    if (!isRefused) return;
    this.#checkRefusal(call);
    const { host, keys, startedAt, caller } = call;
    const { timeline, violations } = this.#world;
    const key = keys.join(' + ');
    const lastWord = Math.max(host.lastReply, this.#lastHeld(host, keys));
    // The caller in front may have ended in this very event.
    const isBehind = this.#isBehind(call) || call.isSecond;
    const silentFor = Math.round(timeline.now - Math.max(lastWord, host.lastPaused, startedAt));
    const text = `${caller} was refused as if "${key}" were held, but Redis has answered nothing`;
    const slack = this.#world.plan.lockType === 'multi' ? ROUND_TRIPS : 0;
    if (silentFor > REFUSED_WITHIN + slack) violations.report('silence', key, `${text} for ${silentFor} ms`);
    // A local caller in front was refused a moment ago, as the process counts time.
    if (lastWord >= startedAt || (isBehind && (call.waitTime < TAKEN_WITHIN || host.lastPaused >= startedAt))) return;
    violations.report('silence', key, `${text} since its call`);
  }

  #checkRefusal({ host, keys, round, startedAt, caller, isSecond }: PendingCall): void {
    // Redisson's queue keeps a free lock for the first position.
    if (host.registryOptions.lockType === 'redisson-fair' || isSecond) return;
    if (this.#lastHeld(host, keys) >= startedAt) return;
    for (const key of keys) {
      const freeSince = this.#vacancies.freeSince(key, round.kind) ?? startedAt;
      if (freeSince >= startedAt || this.#isWaiting(host, key, startedAt)) return;
    }
    const key = keys.join(' + ');
    const text = `${caller} was refused as if "${key}" were held, but it was free all the time`;
    this.#world.violations.report('refused though free', caller, text);
  }

  /** Somebody in this process has waited for the key since then. */
  #isWaiting(host: Host, key: string, since: number): boolean {
    return [...this.pending].some((call) => call.host === host && call.keys.includes(key) && call.startedAt <= since);
  }

  /** When this process last had one of the locks. */
  #lastHeld(host: Host, keys: readonly string[]): number {
    return Math.max(...keys.map((key) => this.#leases.lastHeld(host, key)));
  }

  /**
   * When the first of those called that wait for the key in this process, of a shared lock as this; `undefined`: none.
   * `late`: ms that what was sent for a caller may take to be executed.
   */
  firstCall(
    host: Host,
    lock: string,
    { kind, late = 0 }: { kind?: SharedKind; late?: number } = {},
  ): number | undefined {
    let first: number | undefined;
    for (const { host: of, keys, round, startedAt, waitTime } of this.pending) {
      // One whose time is over waits for a last answer at most, and not in front of others.
      const isWaiting = this.#world.timeline.now - late < startedAt + 0.999 * waitTime - 1;
      if (
        of === host &&
        keys.some((key) => lockName(key) === lock) &&
        isWaiting &&
        (kind === undefined || round.kind === kind) &&
        !(first !== undefined && first <= startedAt)
      )
        first = startedAt;
    }
    return first;
  }

  /** After every event. `run`: the script that was executed just now. */
  note(run?: ScriptRun): void {
    this.#vacancies.note(
      (key, kind) =>
        [...this.pending].some(
          (call) => call.keys.includes(key) && call.round.kind === kind && call.host.process.isAlive,
        ),
      run,
    );
  }

  /** ms so far in which a lock was on its way to another process: for as long as its key lives, where nobody adopts it. */
  get onTheWay(): number {
    return this.#vacancies.onTheWay;
  }

  /** Now and then. */
  check(): void {
    for (const key of this.#keys) this.#checkClaim(key);
    this.#waiters.check(this.pending);
    for (const call of this.pending) {
      if (!call.host.process.isAlive || call.host.process.isPaused) continue;
      this.#checkDeadline(call);
      this.#checkProgress(call);
      this.#checkTurn(call);
      this.#checkSilence(call);
      this.#checkPromptness(call);
    }
  }

  #checkClaim(key: string): void {
    const { server, violations, timeline } = this.#world;
    const owner = this.#vacancies.isUntaken(key) ? ownerOf(server, lockName(key)) : undefined;
    const host = hostOf(this.#world, owner);
    const since = owner === this.#unclaimed.get(key)?.owner ? this.#unclaimed.get(key)?.since : undefined;
    this.#unclaimed.set(key, { owner, since: since ?? timeline.now });
    if (since === undefined || host === undefined || timeline.now - since < CLAIMED_WITHIN) return;
    if (!host.process.isAlive || host.closing !== 'no' || quietFor(this.#world, host) < TAKEN_WITHIN) return;
    // An attempt whose caller has left long ago came to the queue: the grant to its ticket ends by itself.
    if (host.cameLate.has(owner?.split('@')[0] ?? '')) return;
    if (owner !== undefined && this.#isUnheard(host, owner)) return;
    violations.report('free lock left alone', key, `"${key}" is granted to ${owner}, and nobody takes it`);
  }

  /** The message about a grant did not come. By the first such grant its process finds out, and polls from then on. */
  #isUnheard(host: Host, owner: string): boolean {
    if (![...host.unheard].some((message) => message.startsWith(`grant ${owner} `))) return false;
    const first = this.#unheard.get(host) ?? owner;
    this.#unheard.set(host, first);
    return owner === first;
  }

  #isBehind({ host, keys, startedAt }: PendingCall): boolean {
    return keys.some((key) => this.#isWaiting(host, key, startedAt));
  }

  #checkDeadline({ host, keys, caller, waitTime, startedAt, abortedAt, round }: PendingCall): void {
    const { timeline, violations } = this.#world;
    // In a pause nothing can settle.
    if (host.lastPaused >= startedAt || !host.process.isAlive) return;
    const { commandTimeout = 5_000, minReplicas = 0, replicaTimeout = 100 } = host.registryOptions;
    const bound = waitTime === 0 ? commandTimeout : Math.max(waitTime, FIRST_ATTEMPT);
    const key = keys.join(' + ');
    const { lockType, isCalm } = this.#world.plan;
    // What replicas do not acknowledge is given back first.
    const forReplicas = minReplicas > 0 ? 2 * replicaTimeout : 0;
    const repetition = isCalm ? 0 : FIRST_ATTEMPT + forReplicas;
    const slack = SLACK + repetition + forReplicas + (lockType === 'multi' ? ROUND_TRIPS : 0);
    if (timeline.now - startedAt > bound * 1.001 + slack) {
      const text = `${caller} called ${round.method} of "${key}" with a wait of ${waitTime} ms at ${startedAt.toFixed(1)}`;
      violations.report('late', caller, text);
    }
    if (abortedAt !== undefined && timeline.now - abortedAt > SLACK) {
      violations.report('late', caller, `${caller} aborted its wait for "${key}" at ${abortedAt.toFixed(1)}`);
    }
  }

  #checkProgress({ host, keys, round, caller, startedAt }: PendingCall): void {
    const { timeline, violations, hosts } = this.#world;
    const since = Math.max(...keys.map((key) => this.#vacancies.idleSince(key, round.kind) ?? timeline.now), startedAt);
    const isIdle = keys.some((key) => (this.#vacancies.freeSince(key, round.kind) ?? Number.POSITIVE_INFINITY) > since);
    const bound = TAKEN_WITHIN + (isIdle ? this.#longestInVain(since) : 0);
    if (timeline.now - since <= bound || quietFor(this.#world, host) <= bound) return;
    const isRedissons = host.registryOptions.lockType === 'redisson-fair';
    if (isRedissons && !hosts.every((one) => this.#mayBeFirst(one, bound))) return;
    if (keys.some((key) => this.#lastServed(host, key) > timeline.now - bound)) return;
    const key = keys.join(' + ');
    const ms = Math.round(timeline.now - since);
    violations.report('free lock left alone', key, `"${key}" could be taken for ${ms} ms, and ${caller} waits for it`);
  }

  /** Others have it again and again. */
  #checkTurn({ host, keys, caller, startedAt }: PendingCall): void {
    const { timeline, violations, plan } = this.#world;
    if (plan.turns === undefined) return;
    const { within, from } = plan.turns;
    const since = Math.max(startedAt, from, ...keys.map((key) => this.#lastServed(host, key)));
    const ms = Math.min(timeline.now - since, quietFor(this.#world, host));
    if (ms <= within) return;
    const text = `${caller} waits for "${keys.join(' + ')}", and its process has had no turn for ${ms.toFixed(0)} ms`;
    violations.report('starved', host.process.name, text);
  }

  /** ms for which a lock may be left to processes that cannot take it, from then on. */
  #longestInVain(since: number): number {
    const unreachable = this.#countUnreachable();
    if (isShared(this.#world.plan.lockType)) return unreachable > 0 ? TICKET_LIFE : 0;
    const { server, hosts } = this.#world;
    // Redis ends a key at a time of its clock: one that was there when that was set back lasts for longer, also where its
    // process has closed its registry, and is in no trouble any more.
    const isInVain = unreachable > 0 || hosts.some(({ closing }) => closing !== 'no');
    return CLAIM_WINDOW * unreachable + (isInVain && server.wasSetBackAt(since) ? server.behind : 0);
  }

  /** When this process last had the lock. Of a shared one, when it last got it: it may have it several times. */
  #lastServed(host: Host, key: string): number {
    const { plan } = this.#world;
    return isShared(plan.lockType) ? this.#leases.lastEntered(host, key) : this.#leases.lastHeld(host, key);
  }

  /** Processes to which the lock may be granted in vain. */
  #countUnreachable(): number {
    const { hosts } = this.#world;
    return hosts.filter(
      (host) => !host.process.isAlive || quietFor(this.#world, host) < 2 * hosts.length * CLAIM_WINDOW,
    ).length;
  }

  /** Redisson's queue keeps the first position for a process that is dead, or cannot be reached, until its timeout. */
  #mayBeFirst(host: Host, bound: number): boolean {
    return host.process.isAlive && !host.closedInTrouble && quietFor(this.#world, host) > bound;
  }

  #checkPromptness({ host, keys, caller, startedAt, isSecond }: PendingCall): void {
    const { violations } = this.#world;
    const bound = startedAt >= (host.refusal?.from ?? 0) ? REFUSED_AT_ONCE : REFUSED_BY_POLL;
    // One behind another caller of its process waits for that.
    if (isSecond || this.#lastHeld(host, keys) >= startedAt) return;
    const ms = refusedFor(this.#world, host, startedAt);
    const text = `${caller} waits for "${keys.join(' + ')}", and Redis has refused all that it asks for ${ms.toFixed(0)} ms`;
    if (ms > bound) violations.report('late', caller, text);
  }

  #checkSilence({ host, keys, caller, startedAt, waitTime }: PendingCall): void {
    const { timeline, violations } = this.#world;
    const { unavailableAfter = 10_000, commandTimeout = 5_000 } = host.registryOptions;
    const since = Math.max(startedAt, host.lastReply, host.lastPaused, this.#lastHeld(host, keys));
    const key = keys.join(' + ');
    // A lock of several keys makes an attempt before it waits, and may wait for the release of the caller in front.
    const commands = this.#world.plan.lockType === 'multi' ? 3 : 1;
    const bound = unavailableAfter + commands * commandTimeout + TAKEN_WITHIN;
    if (waitTime === 0 || timeline.now - since <= bound) return;
    const ms = Math.round(timeline.now - since);
    const text = `${caller} waits for "${key}" though Redis has been silent for ${ms} ms (unavailableAfter ${unavailableAfter})`;
    violations.report('silence', caller, text);
  }
}
