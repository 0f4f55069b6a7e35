import { NotReplicatedError } from '../api/errors';
import { clock, drift } from '../internal/clock';
import { isServerAnswer } from '../redis/failure';
import type { LockNames } from '../redis/names';
import { SILENT } from '../redis/silence-times';
import type { Call } from './acquire';
import { type Hold, ttlFor } from './hold';
import type { InternalLease } from './internal-lease';
import type { LastUsed } from './last-used';
import { type LockOfLease, RedisLease } from './lease';
import type { LeaseServices, PassedOn } from './lease-services';
import { LocalQueue, Turn } from './local-queue';
import type { CallServices, Entry, LockOfCall } from './lock-of-call';
import type { LoopRound } from './loop-round';
import type { LeaseOfHold } from './of-hold';
import { Patience } from './patience';
import type { Confirmed, Grant, LockProtocol, Released } from './protocol';
import type { LockRequest } from './request';
import type { CallsForSeveral } from './several';
import type { UnlockOrder } from './unlock-order';
import { unreplicated } from './unreplicated';
import type { Wait } from './wait';

/** What the callers of a registry share. */
export interface PassingServices extends CallServices, LeaseServices {
  readonly loopRound: LoopRound;
  readonly lastUsed: LastUsed;
  readonly several: CallsForSeveral;
  openProtocol(names: LockNames): LockProtocol;
  /** What the leases of this key are in that are held beside the turn: see `PassingBeside`. */
  besideTurn(key: string): Iterable<Passing> | undefined;
}

/** The lock whose callers they are. */
export interface PassedLock<Services> {
  readonly key: string;
  readonly names: LockNames;
  readonly services: Services;
  /** It is not in use, and another one that is made anew would know as much. */
  dropPassing(passing: object): void;
}

/** The calls of one lock that are on their way to their leases. */
class Calls extends LocalQueue<Call, RedisLease> {
  /** See LockOfCall. */
  waiting = 0;
  count = 0;
  readonly #several: CallsForSeveral;

  constructor(isTaken: boolean, several: CallsForSeveral) {
    super(isTaken);
    this.#several = several;
  }

  protected override freed(): void {
    this.#several.freed();
  }
}

/**
 * The callers of one lock in this process: who has the turn, which leases they have, and how a hold goes from one to the
 * next. A lock has it while it is in use, or was just now: see `LastUsed`. After that it stays only where something was learnt.
 */
export class Passing<Services extends PassingServices = PassingServices> implements LockOfCall<Call>, LockOfLease {
  readonly #lock: PassedLock<Services>;
  open = 0;
  /** Absent without calls: the turn is that of the lease that is held, or free. */
  #calls: Calls | undefined;
  /** The lease that is held, with the local turn. */
  protected lease: RedisLease | undefined;
  #protocol: LockProtocol | undefined;
  /** Called once, when a lease ends. */
  #whenOver: (() => void)[] | undefined;
  /** What was taken with `lock` and `tryLock` outside all scopes; `undefined`: nothing is left of it. */
  taken: InternalLease | UnlockOrder | undefined;
  /** Its place in `LastUsed`; `undefined`: it has none. */
  placeByUse: number | undefined;

  constructor(lock: PassedLock<Services>) {
    this.#lock = lock;
  }

  get names(): LockNames {
    return this.#lock.names;
  }

  get key(): string {
    return this.#lock.key;
  }

  get services(): Services {
    return this.#lock.services;
  }

  /** A caller has a lease of it, or asks for one. */
  get isInUse(): boolean {
    return this.callers > 0 || this.open > 0;
  }

  /** A call begins, or one for several keys waits for this one. It ends with `left` or `end`. */
  begin(): void {
    this.calls.count++;
  }

  protected get calls(): Calls {
    this.#calls ??= new Calls(this.lease !== undefined, this.services.several);
    return this.#calls;
  }

  /** Calls that are still acquiring. */
  get callers(): number {
    return this.#calls?.count ?? 0;
  }

  get waiting(): number {
    return this.#calls?.waiting ?? 0;
  }

  set waiting(count: number) {
    this.calls.waiting = count;
  }

  /** The turn is that of a call, or of a lease. */
  get isTaken(): boolean {
    return this.#calls?.isTaken ?? this.lease !== undefined;
  }

  /** It is not in use, and all that it knows is what it would know if it were made anew. */
  private get isBlank(): boolean {
    if (this.isInUse || this.taken !== undefined) return false;
    return this.#protocol?.hasLearnt !== true;
  }

  /** A call or a lease has ended. */
  mayRest(): void {
    if (this.placeByUse === undefined) this.services.lastUsed.add(this);
  }

  /** Others were used since: only what is in use stays, and what was learnt. */
  drop(): void {
    if (this.callers === 0) this.#calls = undefined;
    if (this.isBlank) this.#lock.dropPassing(this);
  }

  /** The protocol of the lock, also for what is to share it. */
  openProtocol(): LockProtocol {
    this.#protocol ??= this.services.openProtocol(this.names);
    return this.#protocol;
  }

  /** The next call makes another protocol. */
  retireProtocol(): void {
    this.services.lastUsed.remove(this);
    this.#protocol?.retire?.();
    this.#protocol = undefined;
  }

  // Its leases

  /**
   * The leases that are held, as far as is known: at most one, but for a `SharedPassing`. Those beside the turn may not have
   * heard yet that they were lost, and that another caller of this process has the lock.
   */
  get leases(): readonly RedisLease[] {
    const beside = Array.from(this.services.besideTurn(this.key) ?? [], ({ lease }) => lease);
    return [this.lease, ...beside].filter((lease) => lease !== undefined);
  }

  /** The lease of the turn, or one beside it. */
  get held(): RedisLease | undefined {
    return this.leases[0];
  }

  /** Redis has answered all that it was asked about the lock. */
  get isAnswered(): boolean {
    return this.#protocol?.availability.isAsked !== true;
  }

  /** Who has the lock, as far as is known here. */
  get lastHolder(): { readonly owner: string; readonly remaining: number } | undefined {
    return this.lease ?? this.#protocol?.availability.holderSaid(clock.now());
  }

  /** Resolves when this process has no lease of it. */
  async free(): Promise<void> {
    while (this.open > 0) await this.nextLeaseOver();
  }

  /** Ends the leases that are held, and leaves them to expire. Returns how many there were. */
  loseByClose(): number {
    const held = this.leases.filter(({ hold }) => hold.isHeld);
    for (const { hold } of held) hold.lose('closed');
    // A listener to one loss may have unlocked another one.
    return held.filter((lease) => lease.checkLost()).length;
  }

  // For a call on its way to its lease: see LockOfCall

  get isShared(): boolean {
    return false;
  }

  get isWaiterRefused(): boolean {
    return false;
  }

  get isHeldHere(): boolean {
    return this.lease !== undefined && this.lease.remaining > 0;
  }

  get releasingFor(): number {
    return this.lease?.releasingFor ?? 0;
  }

  /** See RedisLock. */
  failureFor(wait: Wait, isSilent: boolean): Error | undefined {
    const asked = this.#protocol?.availability;
    const failure = asked?.failure;
    if (failure instanceof NotReplicatedError) return unreplicated(wait.key, failure);
    return asked && isSilent ? new Patience(this, asked, { wait, timeLeft: () => 0 }).unavailable() : undefined;
  }

  get isSilent(): boolean {
    return this.releasingFor >= SILENT || this.#protocol?.availability.isSilent(clock.now()) === true;
  }

  entryFor(_call: Call, protocol: LockProtocol): Entry | undefined {
    return protocol.queuesItself ? new Turn() : this.calls.tryEnter();
  }

  waitForTurn(call: Call): Promise<Entry | undefined> {
    return this.calls.enter(call, call.wait);
  }

  suspended(_call: Call, _isSuspended: boolean): void {}

  acquired(hold: Hold, grant: Grant, request: LockRequest, turn: Turn): RedisLease {
    const now = clock.now();
    if (request.minHold > 0) hold.holdAtLeast(request.minHold, true);
    hold.receive(grant);
    const lease = new RedisLease(this, hold, request, now, hold.ttl > Math.ceil(request.ttl));
    hold.granted(grant, this.reliesOn(hold, lease), now);
    this.recordLease(lease, hold, turn);
    return lease;
  }

  /** What is to rely on the hold, now that the lease does. */
  protected reliesOn(_hold: Hold, lease: RedisLease): LeaseOfHold {
    return lease;
  }

  /** A caller has its lease: the turn is that of the lease from now on. */
  protected recordLease(lease: RedisLease, hold: Hold, _turn: Turn): void {
    this.lease = lease;
    hold.protocol.holder = hold;
  }

  left(wait: Wait): void {
    this.services.waits.end(wait);
    wait.end();
    this.end();
  }

  /** A call has ended. */
  end(): void {
    if (--this.calls.count === 0) this.#protocol?.callersLeft();
    this.mayRest();
  }

  nextLeaseOver(): Promise<void> {
    this.#whenOver ??= [];
    return new Promise((resolve) => void this.#whenOver?.push(resolve));
  }

  // For a lease that ends: see LockOfLease

  passOn(ended: RedisLease, now: number, timeout: number): PassedOn | undefined {
    const next = this.nextAfter(ended);
    if (next === undefined) return undefined;
    const { hold } = ended;
    const { protocol, keep } = hold;
    // A script of the application's that is not answered would run in the lease of the next caller.
    const isUnused = hold.evals === 0;
    // Before its `minHold` ends, the lock is nobody else's.
    if (keep === undefined && isUnused && protocol.mayPassOn(now, hold) && hold.isFreshFor(next.request, now)) {
      return this.pass(next, ended, timeout, now, hold.sentAt);
    }
    // Its attempt is in flight, and finds the lock free after a release.
    if (next.isAttempting) return undefined;
    // Half of the time, so that there is some left for a release if this fails.
    const half = timeout / 2;
    if (protocol.exchange !== undefined) {
      const exchange = next.exchange(ended, half);
      this.give(next);
      return exchange.catch((error: unknown) => releaseAfter(error, hold, half));
    }
    if (!isUnused || keep !== undefined) return undefined;
    const driftBefore = drift(now);
    const asked = hold.confirmOrRelease({ ttl: ttlFor(next.request), timeout: half, now, callers: this.calls.length });
    return asked?.then(
      (answer: Confirmed | Released) => {
        if (typeof answer === 'string') return answer;
        hold.confirmed(answer.until, now, driftBefore);
        hold.receive(answer);
        // Its caller may have left since, and the next one may need more.
        const first = this.nextAfter(ended);
        const at = clock.now();
        const isEnough = first !== undefined && hold.isFreshFor(first.request, at, at);
        return isEnough ? this.pass(first, ended, half, at, at) : hold.release(half);
      },
      (error: unknown) => releaseAfter(error, hold, half),
    );
  }

  /** The caller that may get the hold next. The lease that ends was not lost, so it has the turn. */
  protected nextAfter(_ended: RedisLease): Call | undefined {
    return this.#calls?.next;
  }

  /** The next caller gets a lease of the hold: at once, or after a round of the event loop where that is due. */
  private pass(next: Call, ended: RedisLease, timeout: number, now: number, since: number): PassedOn {
    const isLater = this.services.loopRound.isDue(now);
    return isLater ? this.passLater(ended, timeout, since) : this.passNow(next, ended, now);
  }

  /** Until then the lease that ended stands for the hold: `close` waits for it. */
  private async passLater(ended: RedisLease, timeout: number, since: number): Promise<Released | 'passed on'> {
    await clock.immediate();
    const next = this.nextAfter(ended);
    const now = clock.now();
    if (next === undefined || !ended.hold.isFreshFor(next.request, now, since)) return ended.hold.release(timeout);
    return this.passNow(next, ended, now);
  }

  private passNow(next: Call, ended: RedisLease, now: number): 'passed on' {
    ended.handedOver();
    this.give(next, this.leaseOf(ended.hold, next, now));
    this.leaseOver(ended);
    return 'passed on';
  }

  /** The next caller gets the lease; without one, it gets its turn and makes an attempt. */
  protected give(_next: Call, lease?: RedisLease): void {
    this.lease = lease;
    this.calls.pass(lease);
  }

  /** A lease of a hold that was acquired for another one. */
  protected leaseOf(hold: Hold, { request, wait }: Call, now: number): RedisLease {
    if (wait.trace !== undefined) wait.trace.isHandedOver = true;
    if (request.minHold > 0) hold.holdAtLeast(request.minHold, false);
    const lease = new RedisLease(this, hold, request, now, true);
    hold.passedOn(this.reliesOn(hold, lease), now);
    return lease;
  }

  releasing(lease: RedisLease): void {
    const { connection, several } = this.services;
    if (several.first === undefined || this.lease !== lease || this.#calls?.hasWaiters) return;
    several.released(this);
    // Over one connection, what is sent next for it comes to Redis after the release.
    if (connection.connectionEpoch === undefined) return;
    this.giveTurnBack(lease);
  }

  leaseOver(lease: RedisLease, unansweredSince?: number): void {
    // Nor have those that wait for its turn an answer since then.
    if (unansweredSince !== undefined && this.#calls?.hasWaiters)
      this.#protocol?.availability.silentSince(unansweredSince);
    this.open--;
    if (this.lease === lease) this.giveTurnBack(lease);
    if (this.taken?.isUnlocked) this.taken = undefined;
    const whenOver = this.#whenOver;
    this.#whenOver = undefined;
    whenOver?.forEach((resolve) => void resolve());
    this.mayRest();
  }

  private giveTurnBack({ hold }: RedisLease): void {
    // By now it may be the hold of an adopted lease, or of the next caller.
    if (hold.protocol.holder === hold) hold.protocol.holder = undefined;
    this.lease = undefined;
    if (this.#calls === undefined) this.services.several.freed();
    else this.#calls.released();
  }
}

/** A script that was to pass a hold on failed. After an error of the server, which may have stopped it halfway: a release. */
function releaseAfter(error: unknown, hold: Hold, timeout: number): Promise<Released> {
  hold.attempts.giveBackFailed(error);
  if (!isServerAnswer(error)) throw error;
  return hold.release(timeout);
}
