import type { Lease } from '../../../lib';
import type { SharedKind } from '../../../lib/api/lock-types';
import { traitsOf } from '../../../lib/api/lock-types';
import { type Access, mayShare } from '../../judge/exclusion';
import { faultsOf, keysOf, type Round } from '../plan';
import { type Host, hostOf, lifeOf, lockName, ownerOf, ownersOf, quietFor, takenBy, type World } from '../world';
import type { Grants } from './grants';
import { MinHoldChecks } from './min-holds';
import { Replacements } from './replacements';

/** A lease as this library makes it: with the owner value that Redis has for it, its own ttl, and its age in ms. */
export interface OwnedLease extends Lease {
  readonly owner: string;
  readonly ttl: number;
  readonly heldFor: number;
  /** `unlock` was called. */
  readonly isUnlocked: boolean;
}

/** A lease that a caller has and has not unlocked. */
export interface OpenLease {
  readonly lease: OwnedLease;
  readonly host: Host;
  readonly key: string;
  readonly caller: string;
  /** Of a shared lock. */
  readonly kind: SharedKind | undefined;
  /** Virtual ms. A part of a lock of several keys is there before the others, perhaps long before. */
  readonly since: number;
  /** An earlier lease of its process had the same owner value. */
  readonly isPassedOn: boolean;
  /** The key was given its ttl for an earlier lease, or another reader relies on it: it may outlive this one. */
  readonly mayBeOutlived: boolean;
  /** It was granted before Redis lost the key by a fault: others may have the lock meanwhile. */
  isExcused: boolean;
  /** The server lost its data: a process with one connection asks about it as soon as that is made again. */
  isWiped: boolean;
  readonly isRenewed: boolean;
  /** Its event loop was blocked for longer than was left of it. */
  isOutlasted: boolean;
  /** Neither a fault nor a block of its event loop can have delayed what its time is counted from. */
  readonly wasUndisturbed: boolean;
}

/** A key that has less left, in ms, may be gone by the next check. */
const MARGIN = 150;

/** ms; a shorter lease may be lost where the network is slow. */
const LEAST_TTL = 300;

/** ms without a disturbance after which nothing excuses a lease that was lost. */
const QUIET = 6_000;

/** ms in which a hold may be passed on that the server lost: `FRESH`, and a round trip. */
const PASSED_ON_WITHIN = 60;

/** ms for which a release may be unanswered before that is silence: `SILENT`. */
const UNANSWERED = 250;

/** ms that a process may take a lock for its own that Redis has lost. */
const LONGEST_TTL = 30_000;

/** ms after a reconnect in which a lease that the server lost is ended. */
const NOTICED_WITHIN = 1_000;

/** Mutual exclusion, tokens, and what a valid lease promises about Redis. */
export class LeaseChecks {
  readonly open = new Set<OpenLease>();
  /** Of `once`, whose task has ended: its result is kept under it. */
  readonly #keeping = new Set<OpenLease>();
  readonly minHolds: MinHoldChecks;
  readonly replacements: Replacements;
  readonly #world: World;
  /** `isForgotten`: the server has lost the counter since. */
  readonly #lastToken = new Map<string, { readonly token: number; readonly caller: string; isForgotten: boolean }>();
  readonly #lastOpen = new Map<string, number>();
  readonly #lastOpened = new Map<string, number>();
  readonly #lastExcused = new Map<string, number>();
  /** By owner value: the callers that had leases of it, the last one last. */
  readonly #opened = new Map<string, string[]>();
  readonly #grants: Grants;
  /** The scripts that ran. */
  readonly #evaluated = new Set<string>();

  constructor(world: World, grants: Grants) {
    this.#world = world;
    this.#grants = grants;
    this.replacements = new Replacements(world, this.open);
    this.minHolds = new MinHoldChecks(world, keysOf(world.plan));
  }

  opened(lease: OwnedLease, host: Host, key: string, caller: string, { kind, takes, ttl, renew }: Round): OpenLease {
    const lostAt = this.#grants.lostAt(lockName(key), lease.owner);
    const isPart = this.#world.plan.lockType === 'multi';
    const since = this.#world.timeline.now - (isPart ? lease.heldFor : 0);
    const isPassedOn = this.#opened.has(lease.owner);
    // Another call may have had it, which waited for the rest of its keys: that lease was never opened.
    const isOlder = isPart && (this.#grants.since(lockName(key), lease.owner) ?? since) < since;
    const entry: OpenLease = {
      lease,
      host,
      key,
      caller,
      kind,
      since,
      isPassedOn,
      mayBeOutlived: isPassedOn || isOlder || kind === 'read',
      isWiped: false,
      isExcused: lostAt !== undefined || host.isUnaware,
      isRenewed: renew ?? ttl === undefined,
      // A reader that entered together with it, or another caller of its process, has blocked the event loop already: now,
      // or while the attempt was on its way.
      isOutlasted: (kind === 'read' && lease.remaining === 0) || lease.remaining <= this.#roundTrip(host),
      wasUndisturbed:
        (host.disturbedUntil === 0 || this.#world.timeline.now - host.disturbedUntil > QUIET) &&
        lifeOf(this.#world.server, lockName(key), lease.owner) - lease.remaining <= MARGIN,
    };
    this.replacements.opened(entry);
    this.open.add(entry);
    const permits = takenBy(lease.owner);
    if (kind === 'semaphore' && permits !== takes) {
      const text = `${caller} asked for ${takes} permits of "${key}", and has ${permits}`;
      this.#world.violations.report('too many permits', key, text);
    }
    if (entry.isPassedOn) this.#passedOn(entry, lostAt);
    else this.#checkReplicated(entry);
    this.#opened.set(lease.owner, [...(this.#opened.get(lease.owner) ?? []), caller]);
    this.#lastOpened.set(`${host.index}/${key}`, this.#world.timeline.now);
    this.#checkToken(entry);
    lease.signal.addEventListener('abort', () => this.#lost(entry));
    return entry;
  }

  closed(entry: OpenLease): void {
    this.open.delete(entry);
    this.#lastOpen.set(`${entry.host.index}/${entry.key}`, this.#world.timeline.now);
  }

  /** The task of `once` has ended, and its lease is renewed until the result is kept. */
  taskEnded(entry: OpenLease): void {
    this.closed(entry);
    this.#keeping.add(entry);
  }

  noteHeld(host: Host, key: string): void {
    this.#lastOpen.set(`${host.index}/${key}`, this.#world.timeline.now);
  }

  wasOpened(owner: string): boolean {
    return this.#opened.has(owner);
  }

  /** `caller` has sent this script under its lease: `id` says which one. */
  evaluated(owner: string, id: string, key: string): void {
    const [caller = ''] = id.split('#');
    if (this.#evaluated.has(id)) {
      this.#world.violations.report('eval ran twice', key, `the script ${id} ran twice under "${key}"`);
    }
    this.#evaluated.add(id);
    const callers = this.#opened.get(owner) ?? [];
    const now = callers.at(-1);
    // The readers of a process have one hold.
    const isReaders = this.#world.plan.lockType === 'read-write' && callers.includes(caller);
    if (now === caller || isReaders) return;
    this.#world.violations.report('eval in another lease', key, `a script of ${caller} ran in the lease of ${now}`);
  }

  /** The event loop of a process is about to be blocked. */
  paused(host: Host, ms: number): void {
    // A renewal that goes out after it has to be answered in what is left. What was sent before it is in its way.
    const margin = this.#roundTrip(host);
    for (const entry of [...this.open, ...this.#keeping]) {
      if (entry.host === host && entry.lease.remaining <= ms + margin) entry.isOutlasted = true;
    }
  }

  /** ms in which its client has an answer, where nothing else delays it. */
  #roundTrip(host: Host): number {
    const { least = 0, jitter = 0 } = this.#world.plan.processes[host.index]?.client.delays ?? {};
    return Math.max(MARGIN / 10, 4 * (least + jitter));
  }

  /** When this process last had the lock of the key; -Infinity: never. */
  lastHeld(host: Host, key: string): number {
    const { timeline, plan, server } = this.#world;
    for (const entry of this.open) if (entry.host === host && entry.key === key) return timeline.now;
    // A lock of several keys may have it, and wait for another one.
    if (plan.lockType === 'multi') {
      const lock = lockName(key);
      // It does not know yet that Redis has lost it.
      const owner = ownerOf(server, lock) ?? this.#grants.ownerAtLoss(lock, timeline.now - LONGEST_TTL);
      if (hostOf(this.#world, owner) === host) return timeline.now;
    }
    const last = this.#lastOpen.get(`${host.index}/${key}`) ?? Number.NEGATIVE_INFINITY;
    // One that gave up gives back what it has, without a caller that would wait for the answer.
    return plan.lockType === 'multi' && timeline.now - last < UNANSWERED ? timeline.now : last;
  }

  /** When Redis gave the lock to this owner, who has it. */
  grantedAt(key: string, owner: string): number {
    return this.#grants.since(lockName(key), owner) ?? Number.NEGATIVE_INFINITY;
  }

  /** When this process last got the lock of the key; -Infinity: never. */
  lastEntered(host: Host, key: string): number {
    return this.#lastOpened.get(`${host.index}/${key}`) ?? Number.NEGATIVE_INFINITY;
  }

  /** When this process last had a lease of the key that Redis had lost by a fault; -Infinity: never. */
  lastExcused(host: Host, key: string): number {
    return this.#lastExcused.get(`${host.index}/${key}`) ?? Number.NEGATIVE_INFINITY;
  }

  /** Redis lost the keys: their holders may be joined by others until their leases are over. */
  excuse(keys: readonly string[], losesCounters: boolean): void {
    for (const key of keys) this.#grants.lost(lockName(key), this.#world.timeline.now);
    for (const key of keys) this.replacements.lost(key);
    this.minHolds.excuse(keys);
    for (const entry of this.open) {
      if (!keys.includes(entry.key)) continue;
      entry.isExcused = true;
      entry.isWiped ||= losesCounters && this.#world.plan.processes[entry.host.index]?.connections === 1;
    }
    if (losesCounters) this.#world.permits.lost();
    if (losesCounters) for (const key of this.#lastToken.keys()) this.excuseTokens(key);
  }

  /** The counter behind the tokens of the key may be lost. Redisson's begins again. */
  excuseTokens(key: string): void {
    if (this.#isRedissons) this.#lastToken.delete(key);
    const last = this.#lastToken.get(key);
    if (last !== undefined) last.isForgotten = true;
  }

  /** Somebody has ended the acquisition by force. */
  excuseOne(key: string, acquisition: string): void {
    this.#grants.lost(lockName(key), this.#world.timeline.now);
    this.replacements.lost(key);
    this.minHolds.excuse([key]);
    for (const entry of this.open) {
      if (entry.key === key && entry.lease.owner.replace(/@\d+$/, '') === acquisition) entry.isExcused = true;
    }
  }

  /** After every event. */
  check(): void {
    this.minHolds.note();
    for (const entry of this.open) {
      if (entry.isWiped) this.#checkNoticed(entry);
      if (entry.isExcused) this.#lastExcused.set(`${entry.host.index}/${entry.key}`, this.#world.timeline.now);
      if (entry.isExcused || !this.#isValid(entry)) continue;
      if (this.replacements.isTaken(entry)) continue;
      this.#checkKey(entry);
      for (const other of this.open) {
        if (other === entry) break;
        if (other.key !== entry.key || other.isExcused || !this.#isValid(other)) continue;
        // What `Replacements` checks.
        if (this.replacements.isTaken(other)) continue;
        if (mayShare(accessOf(entry), accessOf(other))) continue;
        const text = `${other.caller} and ${entry.caller} have valid leases of "${entry.key}" at one time`;
        this.#world.violations.report('two holders', entry.key, text);
      }
    }
  }

  #passedOn({ key, lease, host, caller, kind, since }: OpenLease, lostAt = Number.POSITIVE_INFINITY): void {
    // A reader joins others, whose hold goes on.
    if (kind !== 'read') this.minHolds.passedOn(key, lease.owner);
    const ms = since - lostAt;
    if (ms <= PASSED_ON_WITHIN || quietFor(this.#world, host) < NOTICED_WITHIN) return;
    const text = `${caller} has "${key}" by a hold that Redis lost ${ms.toFixed(0)} ms ago`;
    this.#world.violations.report('loss not noticed', key, text);
  }

  #checkReplicated({ host, key, lease, caller, isExcused }: OpenLease): void {
    const { minReplicas = 0 } = host.registryOptions;
    const since = this.#grants.since(lockName(key), lease.owner);
    if (minReplicas === 0 || isExcused || since === undefined || lease.remaining === 0) return;
    const count = this.#world.network.replicas.having(since);
    const text = `${caller} has "${key}", and of ${minReplicas} replicas ${count} have it`;
    if (count < minReplicas) this.#world.violations.report('not replicated', key, text);
  }

  #checkNoticed(entry: OpenLease): void {
    const { host, caller, key, lease } = entry;
    if (quietFor(this.#world, host) < NOTICED_WITHIN || !this.#isValid(entry)) return;
    if (ownersOf(this.#world.server, lockName(key)).includes(lease.owner)) return;
    const text = `${caller} still has a valid lease of "${key}", though it is connected to a server without it`;
    this.#world.violations.report('loss not noticed', key, text);
  }

  #isValid({ host, lease }: OpenLease): boolean {
    const { process } = host;
    if (!process.isAlive || process.isSuspended) return false;
    return process.observe(() => lease.remaining) > 0;
  }

  /** The lease ends before its key does (P3), unless a server has prolonged it that was replaced. */
  #checkKey({ host, key, caller, lease }: OpenLease): void {
    const { server, violations, plan } = this.#world;
    const remaining = host.process.observe(() => lease.remaining);
    const life = lifeOf(server, lockName(key), lease.owner);
    if (remaining <= life || (life > 0 && faultsOf(plan).some(({ kind }) => kind === 'replace'))) return;
    const owners = ownersOf(server, lockName(key)).join(' and ') || 'nobody';
    const text = `${caller} has a lease of "${key}" for ${remaining} ms, but in Redis ${owners} has it, for ${life} ms`;
    violations.report('lease without key', key, text);
  }

  #checkToken(entry: OpenLease): void {
    const { lease, key, caller } = entry;
    const token = lease.fencingToken;
    if (token === undefined || entry.isExcused || this.replacements.isOutlived(entry) || !this.#isValid(entry)) return;
    const lostAt = this.#world.lostCompanions.get(lockName(key)) ?? Number.NEGATIVE_INFINITY;
    // The counter has begun again, and this was granted before: it was on its way, or its call waited for another lock.
    const isForgotten = (this.#grants.since(lockName(key), lease.owner) ?? entry.since) <= lostAt;
    if (this.#isRedissons && isForgotten) return;
    const last = this.#lastToken.get(key);
    // Without its counter, tokens go on by the clock of the server. That may be behind the last one (P10), as it was when
    // a lock was granted that its process has passed on since then.
    const isExcused = last?.isForgotten && this.#world.server.behind > 0;
    if (last !== undefined && token <= last.token && !isExcused) {
      const text = `${caller} got token ${token} of "${key}" after ${last.caller} had ${last.token}`;
      this.#world.violations.report('token', key, text);
    }
    this.#lastToken.set(key, { token, caller, isForgotten });
  }

  get #isRedissons(): boolean {
    const lockType = this.#world.plan.processes[0]?.options.lockType;
    return lockType !== undefined && traitsOf(lockType).keepsCounter === true;
  }

  /** What is lost though Redis has confirmed it, and says so on an undisturbed connection. */
  #lost(entry: OpenLease): void {
    const { host, key, caller, lease, wasUndisturbed } = entry;
    const { plan, server, violations, history, timeline } = this.#world;
    // The task of `once` has ended, and its result is kept: Redis may lose the key meanwhile too.
    const isExcused = entry.isExcused || this.#grants.lostAt(lockName(key), lease.owner) !== undefined;
    const reason = (lease.signal.reason as { reason?: string }).reason ?? 'for no reason';
    history.note(host.process.name, () => `${caller} lost "${key}" (${reason})`);
    // Also where a task of `once` has ended, and its result is kept at present.
    // One that ends by itself meanwhile ends a little before its key (P3).
    const endedBeside = reason === 'expired' && host.closing === 'closing';
    if (reason === 'closed' || endedBeside) host.leftByClose.add(lockName(key));
    if (isExcused || reason === 'closed' || host.closing !== 'no' || !host.process.isAlive) return;
    // The task of another caller may have blocked the event loop just now: what runs after it reads the end of that.
    if (isOver(entry, Math.max(timeline.now, host.process.pausedUntil)) && reason === 'expired') return;
    if (plan.isCalm && entry.isPassedOn && reason === 'expired') {
      violations.report(
        'lost though confirmed',
        key,
        `${caller} lost "${key}", which was passed on with too little left`,
      );
    }
    const isReachable = timeline.now - host.lastCutOff > lease.ttl && lease.ttl >= LEAST_TTL;
    if (entry.isRenewed && isReachable && !entry.isOutlasted && reason !== 'stolen') {
      const text = `${caller} lost "${key}" (${reason}), and no block of its event loop was as long as what was left of it`;
      violations.report('lost though renewed', key, text);
    }
    const life = lifeOf(server, lockName(key), lease.owner);
    // The answer lies there: it is read before the lease is called lost. Unless its connection was lost, however long ago.
    const isBlockedOnly = wasUndisturbed && host.process.hasUnread && host.disturbedUntil <= entry.since;
    // The key lives for longer then than it was given.
    if (!server.isSetBack && life > MARGIN && (isBlockedOnly || quietFor(this.#world, host) > QUIET)) {
      violations.report(
        'lost though confirmed',
        key,
        `${caller} lost "${key}" (${reason}); its key lives for ${life} ms`,
      );
    }
  }
}

/** It has lasted for its ttl, and its key goes on. */
function isOver({ mayBeOutlived, since, lease }: OpenLease, now: number): boolean {
  return mayBeOutlived && now - since >= lease.ttl * 0.99 - 2;
}

function accessOf({ kind }: OpenLease): Access {
  return kind === 'semaphore' ? 'permit' : (kind ?? 'exclusive');
}
