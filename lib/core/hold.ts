import type { LockLostReason } from '../api/distributed-lock';
import { clock, drift, reliableUntil, wasSuspended } from '../internal/clock';
import type { Timed } from '../internal/timers';
import { Attempts } from '../redis/attempts';
import { become, type HoldState } from './hold-states';
import type { LossDetails } from './loss';
import type { Asked, AskedFor, HoldServices, LeaseOfHold, Unusual } from './of-hold';
import type {
  Confirmation,
  Confirmed,
  Grant,
  HoldOfProtocol,
  Keep,
  LockProtocol,
  Ownership,
  Released,
  Tokens,
} from './protocol';
import type { LockRequest } from './request';

/**
 * ms; a hold is passed on without a command for this long after a request that Redis confirmed. So a lock that was lost
 * without a word is found within this time, and a busy one costs some 20 commands a second.
 */
export const FRESH = 50;

/**
 * Means "age unknown": the key's remaining ttl does not show it, because the `minHold` began after the grant, or a lease
 * with another ttl joined. Then only the local clock counts.
 */
const UNKNOWN_AGE = Number.MAX_SAFE_INTEGER;

/** Of a hold whose attempts were all answered, if something else is in doubt later: nothing that it asked for counts any more. */
const ANSWERED = { minHold: 0, waits: false, since: 0 };

/**
 * What this process has in Redis for one lock, or may have: an owner value that is never used again, and a deadline. It
 * begins with the first attempt of a caller. When it is granted, callers of this process have leases of it, one after
 * the other. It ends when it is released, or lost. So whatever is sent late for it finds nothing of a later one.
 *
 * Times are ms on the monotonic clock. There may be many holds. So times are whole ms, rounded down: V8 stores a fraction
 * beside the object, and a deadline must never be later than it was computed. And what was asked for is dropped with the
 * grant, and what is unusual has an object of its own.
 */
export class Hold implements HoldOfProtocol, Timed {
  // As HoldOfProtocol, which says what they mean
  ticket: string;
  owner: string;
  ttl: number;
  sentAt = 0;
  drift = 0;
  readonly permits: number;
  acquiredAt = 0;

  protocol: LockProtocol;
  readonly #services: HoldServices<Hold>;
  /** `undefined`: Redis has granted it, and nothing else can come of its attempts. */
  #asked: Asked | undefined;

  #state: HoldState = 'requested';
  /** The lease that relies on it, while it is held. */
  lease: LeaseOfHold | undefined;
  /** The token of its next lease, and how many there are from that on. `undefined`: its leases have none. */
  #tokens: { next: number; left: number } | undefined;
  /** When the watchdog renews it, or asks about it; `undefined`: not at all. Whole ms. Kept by the watchdog, as `position`. */
  renewAt: number | undefined;
  position = -1;
  /** Renewals in flight whose answer has not been read. */
  unread = 0;
  /** Leases of it whose callers have not given them back. */
  leases = 0;
  #unusual: Unusual | undefined;
  /** Its key ends then, unless it is renewed. It may outlive the lease, which ends by its own ttl. */
  keyUntil = 0;
  /** The key has its full ttl. A grant with a claim window has it only after its first renewal. */
  #hasFullTtl = true;

  constructor(ticket: string, asked: AskedFor, services: HoldServices<Hold>, protocol: LockProtocol) {
    this.ticket = ticket;
    this.owner = ticket;
    this.ttl = Math.ceil(asked.ttl);
    this.permits = asked.permits;
    const { minHold, waits } = asked;
    this.#asked = { minHold, waits, since: 0, sentAt: 0, attempts: undefined };
    this.#services = services;
    this.protocol = protocol;
  }

  // Attempts

  /** What became of the attempts to acquire it. */
  get attempts(): Attempts {
    const { connection } = this.#services;
    this.#asked ??= { ...ANSWERED, sentAt: this.sentAt, attempts: new Attempts(connection, true) };
    this.#asked.attempts ??= new Attempts(connection);
    return this.#asked.attempts;
  }

  get waits(): boolean {
    return this.#asked?.waits === true;
  }

  get leastLife(): number {
    return this.#asked?.minHold ?? 0;
  }

  get since(): number {
    return this.#asked?.since ?? 0;
  }

  /** An attempt is about to be sent, for a caller that called at `since`. */
  stamp(since: number): void {
    const now = clock.now();
    this.sentAt = Math.floor(now);
    this.drift = drift(now);
    if (this.#asked !== undefined) {
      this.#asked.sentAt = now;
      this.#asked.since = since;
    }
    this.attempts.sending();
  }

  /** The hold may have a position in a queue in Redis, once an attempt was sent. */
  get isEnqueued(): boolean {
    return this.waits && this.protocol.hasQueue === true;
  }

  /** Each attempt was answered. Does not make what a hold without doubt needs not. */
  get isCertain(): boolean {
    return this.#asked?.attempts?.areCertain !== false;
  }

  /** For its next attempt, while nothing of it is in Redis. The ticket of a position in a queue stays. */
  renameTo(owner: string): void {
    this.owner = owner;
    if (!this.isEnqueued) this.ticket = owner;
  }

  /** The owner values under which something of it may be in Redis. A ticket finds what is derived from it. */
  get owners(): readonly string[] {
    const { owner, ticket } = this;
    return owner === ticket || owner.startsWith(`${ticket}@`) ? [ticket] : [ticket, owner];
  }

  get waited(): string {
    const { since, sentAt } = this.#asked ?? this;
    return String(Math.max(0, Math.round(1_000 * (sentAt - since))));
  }

  /** Something of it may be in Redis, or may still be written there. */
  get mayBeInRedis(): boolean {
    const { wereNeverInDoubt, inDoubt, reachedRedis } = this.attempts;
    return inDoubt > 0 || (reachedRedis && (!wereNeverInDoubt || this.isEnqueued));
  }

  // Leases

  /** Redis granted the lock, and a caller relies on it from `now` on. */
  granted(grant: Grant, lease: LeaseOfHold, now: number): void {
    const { owner, until, drift: driftBefore, renewal } = grant;
    this.owner = owner;
    this.keyUntil = Math.floor(until);
    this.acquiredAt = this.sentAt;
    this.drift = driftBefore;
    this.#state = become.held(this.#state);
    this.lease = lease;
    // What was asked for, and what became of it, is needed only where an attempt may still be executed.
    if (this.isCertain) this.#asked = undefined;
    if (renewal !== undefined) {
      this.#hasFullTtl = false;
      this.unread++;
      void renewal.then((ownership) => this.noteRenewal(ownership, now, driftBefore));
    }
    this.#services.watchdog.add(this, now);
  }

  /** The next caller of this process relies on it. */
  passedOn(lease: LeaseOfHold, now: number): void {
    const { endsAt = Number.POSITIVE_INFINITY, ttl, renewedTtl = Number.POSITIVE_INFINITY } = lease;
    const { renewAt } = this;
    // The watchdog has kept the time of the lease before: that is early enough if it comes before this lease needs it.
    const latest = Math.min(endsAt, now + renewedTtl / 3);
    const isScheduled = this.isHeld && this.unread === 0 && renewAt !== undefined && renewAt <= latest;
    const isSameTtl = this.ttl === ttl;
    if (!isSameTtl) this.changeTtl(ttl);
    if (this.#unusual !== undefined) this.#unusual.minHold = UNKNOWN_AGE;
    this.#state = become.held(this.#state);
    this.lease = lease;
    if (this.isCertain) this.#asked = undefined;
    if (!isScheduled || !isSameTtl) this.#services.watchdog.add(this, now);
  }

  /** Redis has given it these tokens. What is left of earlier ones is not used. */
  receive({ fencingToken, moreTokens = 0 }: Tokens): void {
    this.#tokens = fencingToken === undefined ? undefined : { next: fencingToken, left: 1 + moreTokens };
  }

  /** The token of its next lease, which no other lease gets. */
  takeToken(): number | undefined {
    const tokens = this.#tokens;
    if (tokens === undefined) return undefined;
    if (tokens.left === 0) throw new Error(`${this.owner} has no token left`);
    tokens.left--;
    return tokens.next++;
  }

  /** Its lease ended by `unlock`: it is not renewed while nobody relies on it. What is planned counts for the next lease. */
  unlocked(): void {
    if (this.#state !== 'held') return;
    this.#services.watchdog.remove(this);
    this.#state = become.unlocked(this.#state);
    this.lease = undefined;
  }

  /** Gives the hold up: no caller here gets it any more. Returns false if it was given up before, as by another reader. */
  giveUp(): boolean {
    if (this.#state === 'given up') return false;
    this.#state = become['given up'](this.#state);
    return true;
  }

  /**
   * Whether it may go to another lease without a command: Redis confirmed it just now, what is left of it is enough for
   * what is asked for, and so are its tokens. `since`: when it was confirmed; by default, when that was asked for.
   */
  isFreshFor(request: LockRequest, now: number, since = this.sentAt): boolean {
    if (this.#tokens?.left === 0) return false;
    const isEnough = this.keyUntil - now >= neededFor(request) && this.permits === request.permits;
    return isEnough && now - since <= FRESH && !this.isSuspectAt(drift(now)) && !this.mayBeOutdated;
  }

  /** A server that was replaced, while it was frozen or before a reconnect, may have confirmed it last. */
  private get mayBeOutdated(): boolean {
    const { connection, watchdog } = this.#services;
    return this.sentAt < watchdog.askedAboutAllAt || connection.mayBeOutdated(this.sentAt);
  }

  /** What the last renewal failed with; `undefined`: it was confirmed, or is not answered yet. */
  get failure(): unknown {
    return this.#unusual?.failure;
  }

  /** Its deadline has come while a renewal was in flight, until the event loop has read what has arrived. */
  get reading(): Promise<void> | undefined {
    return this.#unusual?.reading;
  }

  /** Scripts of the application's that run under it and are not answered. */
  get evals(): number {
    return this.#unusual?.evals ?? 0;
  }

  set evals(count: number) {
    this.more.evals = count;
  }

  private get more(): Unusual {
    this.#unusual ??= { failure: undefined, evals: 0, reading: undefined, minHoldUntil: 0, minHold: 0, longestTtl: 0 };
    return this.#unusual;
  }

  get state(): HoldState {
    return this.#state;
  }

  get isHeld(): boolean {
    return this.#state === 'held';
  }

  /** Its deadline: until when its lease may be relied on. */
  get until(): number {
    return Math.min(this.keyUntil, this.lease?.endsAt ?? Number.POSITIVE_INFINITY);
  }

  /**
   * The wall clock went on while the monotonic clock stood still: the machine was suspended, or the wall clock was set.
   * Until Redis confirms it, it must not be relied on. A slow change is harmless: renewals are frequent.
   */
  isSuspectAt(driftNow: number): boolean {
    return wasSuspended(this.drift, driftNow);
  }

  /** Asks Redis now whether it is still held: it must not be relied on, or somebody else may have released it. */
  confirmNow(): void {
    this.#services.watchdog.askAbout(this);
  }

  /** A message says that the lock was released, perhaps by this process before: asks Redis when the hold is not fresh any more. */
  confirmSoon(): void {
    this.#services.watchdog.askAbout(this, this.sentAt + FRESH);
  }

  /** Asks Redis about all holds that must not be relied on, as soon as the watchdog allows it. */
  hurry(): void {
    this.#services.watchdog.hurry();
  }

  // Renewals

  /** Whether a renewal at this time may extend it. Without a first one the hold ends with the claim window. */
  mayRenewAt(time: number): boolean {
    if (!this.#hasFullTtl) return true;
    if (this.lease === undefined) return false;
    const { renewUntil } = this.lease;
    return renewUntil === undefined || time < renewUntil;
  }

  /** The lease is not to be renewed any more, and ends by its own ttl. */
  endRenewal(): void {
    if (this.#hasFullTtl) this.renewAt = undefined;
  }

  /**
   * Extends it where it may be renewed, and else only asks about it. Notifies the watchdog when Redis has answered. `now`
   * and `driftNow` as read before.
   */
  renewInBackground(timeout: number, now: number, driftNow: number): void {
    // A renewal for what is left extends nothing, and says whether it is still held. A key that lost its expiry gets one.
    const left = this.isSuspectAt(driftNow) ? 0 : Math.floor(this.keyUntil - now);
    const isRenewed = this.mayRenewAt(now);
    // The reader that asked for a longer ttl may have left.
    if (isRenewed && this.#hasFullTtl) this.changeTtl((this.lease as LeaseOfHold).ttl);
    const ttl = isRenewed ? this.ttl : Math.max(1, left);
    this.unread++;
    const settle = (ownership: Ownership): void => this.noteRenewal(ownership, now, driftNow);
    this.protocol.renew(this.owner, ttl, timeout, settle);
  }

  /** Renews it now, for at least `ttl` ms. `held`: called where it is still held then, before others hear of that. */
  async renew(ttl: number, timeout: number, held?: () => void): Promise<Ownership> {
    const driftBefore = drift();
    const sentAt = clock.now();
    this.unread++;
    this.asks(ttl);
    const ownership = await new Promise<Ownership>((resolve) => {
      this.protocol.renew(this.owner, ttl, timeout, resolve);
    });
    if (ownership.state === 'held') held?.();
    this.noteRenewal(ownership, sentAt, driftBefore);
    return ownership;
  }

  get longestTtl(): number {
    return Math.max(this.ttl, this.#unusual?.longestTtl ?? 0);
  }

  private asks(ttl: number): void {
    const asked = Math.ceil(ttl);
    if (asked > this.longestTtl) this.more.longestTtl = asked;
  }

  private changeTtl(ttl: number): void {
    const before = this.longestTtl;
    this.ttl = ttl;
    this.asks(before);
  }

  /** A renewal has ended. `driftBefore`: as it was before the renewal was sent. */
  private noteRenewal(ownership: Ownership, sentAt: number, driftBefore: number): void {
    this.read(ownership, sentAt, driftBefore);
    this.#services.watchdog.renewed(this, sentAt, ownership.state === 'held');
  }

  private read(ownership: Ownership, sentAt: number, driftBefore: number): void {
    this.unread--;
    // A process that was busy, or a slow server: a confirmation counts from when it was sent, whenever it is read.
    if (ownership.state === 'unknown') {
      this.more.failure = ownership.cause;
      void ownership.late?.then((late) => this.readLate(late, sentAt, driftBefore));
    } else this.apply(ownership, sentAt, driftBefore);
  }

  private readLate(late: Ownership, sentAt: number, driftBefore: number): void {
    // Before a suspension the deadline was measured on a clock that has stood still since.
    if (wasSuspended(driftBefore, this.drift)) return;
    this.apply(late, sentAt, driftBefore);
  }

  private apply(ownership: Ownership, sentAt: number, driftBefore: number): void {
    if (!this.isHeld) {
      // Else it could be passed on as confirmed.
      if (ownership.state === 'expired' || ownership.state === 'stolen') this.keyUntil = 0;
      return;
    }
    if (ownership.state === 'held') {
      this.confirmed(ownership.until, sentAt, driftBefore);
      this.lease?.renewed();
    } else if (ownership.state !== 'unknown') {
      this.lose(ownership.state);
    }
  }

  /** Redis said, in answer to a request that was sent then, that its key lives until `until`. */
  confirmed(until: number, sentAt: number, driftBefore: number): void {
    const keyUntil = Math.floor(until);
    if (this.#unusual !== undefined) this.#unusual.failure = undefined;
    // After a suspension the old deadline is worth nothing. Else it stands, since no script shortens a key's ttl.
    this.keyUntil = this.isSuspectAt(driftBefore) ? keyUntil : Math.max(this.keyUntil, keyUntil);
    this.sentAt = Math.max(this.sentAt, Math.floor(sentAt));
    this.drift = driftBefore;
    this.#hasFullTtl = true;
  }

  // Loss

  /**
   * Ends the lease if its deadline has come. After a pause of the process, the answer of a renewal may have arrived
   * without having been read. So while a renewal is in flight the lease is only unconfirmed (`remaining` is 0) until
   * the event loop has read what is there.
   */
  loseIfDue(now = clock.now()): void {
    if (this.lease === undefined || now < this.until) return;
    if (this.unread > 0) this.more.reading ??= this.readThenLose();
    else this.loseByDeadline(this.failure === undefined ? 'not asked' : 'not confirmed');
  }

  private async readThenLose(): Promise<void> {
    // Sockets are read between two ticks of the event loop. The current tick may have passed that point already.
    await clock.immediate();
    await clock.immediate();
    this.more.reading = undefined;
    if (this.isHeld && clock.now() >= this.until) this.loseByDeadline('not confirmed');
  }

  private loseByDeadline(how: LossDetails['how']): void {
    const now = clock.now();
    if (now < this.keyUntil && this.lease?.endSome?.(now)) {
      this.#services.watchdog.moved(this);
      return;
    }
    if (this.mayRenewAt(this.until)) this.lose('unconfirmed', { how, cause: this.failure });
    else this.lose('expired', { how: 'ttl over' });
  }

  lose(reason: LockLostReason, details?: LossDetails): void {
    const { lease } = this;
    if (lease === undefined) return;
    this.#services.watchdog.remove(this);
    this.#state = become.lost(this.#state);
    this.lease = undefined;
    lease.lost(reason, details);
  }

  // Release

  /** Nobody else gets the lock for `ms` from now on, also when it is unlocked before. `isNew`: it is being acquired. */
  holdAtLeast(ms: number, isNew: boolean): void {
    const more = this.more;
    more.minHoldUntil = Math.max(more.minHoldUntil, clock.now() + ms);
    more.minHold = isNew ? Math.ceil(ms) : UNKNOWN_AGE;
  }

  endMinHold(): void {
    if (this.#unusual !== undefined) this.#unusual.minHoldUntil = 0;
  }

  /** How long it is to be kept when it is released now; `undefined`: not at all. */
  get keep(): Keep | undefined {
    const { minHoldUntil = 0, minHold = 0 } = this.#unusual ?? {};
    if (minHoldUntil === 0) return undefined;
    const left = Math.ceil(minHoldUntil - clock.now());
    return left > 0 ? { left, minHold, ttl: this.ttl } : undefined;
  }

  /** See `LockProtocol`. */
  confirmOrRelease(asked: Omit<Confirmation, 'owner'>): Promise<Confirmed | Released> | undefined {
    this.asks(asked.ttl);
    return this.protocol.confirmOrRelease?.({ owner: this.owner, ...asked });
  }

  /** One try to release it, or to keep it until its `minHold` ends. `now`: as in `LockProtocol.release`. */
  release(timeout: number, now?: number, owner = this.owner): Promise<Released> {
    return this.protocol.release(owner, timeout, this.keep, now);
  }
}

/** ms that must be left of a hold for a lease: its whole ttl where it is not renewed. */
function neededFor({ ttl, renew, minHold }: LockRequest): number {
  return Math.max(renew ? ttl / 3 : reliableUntil(0, ttl), minHold);
}

/** The ttl to ask for when a hold goes to a lease: fixed leases that follow each other then need no command for a while. */
export function ttlFor({ ttl, renew, minHold }: LockRequest): number {
  return Math.ceil(Math.max(ttl, minHold) + (renew ? 0 : FRESH));
}

/** Until when a fixed lease lasts that begins now. */
export function endOfLease(now: number, ttl: number): number {
  return Math.floor(reliableUntil(now, ttl));
}
