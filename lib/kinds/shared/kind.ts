import { entersTogether, isExclusive, SHARED_KINDS, type SharedKind } from '../../api/lock-types';
import { AskedLock } from '../../core/availability';
import type { SharedBackend } from '../../core/backend';
import { FRESH } from '../../core/hold';
import {
  type Exchange,
  type Grant,
  type HoldOfProtocol,
  type Keep,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
} from '../../core/protocol';
import type { LockRequest } from '../../core/request';
import type { Wait } from '../../core/wait';
import { clock, reliableUntil } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { LockScript } from '../../redis/script';
import { inspectorOf } from '../common/inspector';
import { leaseScripts } from '../common/lease-scripts';
import type { RegistryParts } from '../common/registry-parts';
import { arrayIn, exchanged, foundIn, numberIn, ownerIn, remainingIn, renew, textIn } from '../common/replies';
import { keepArguments } from '../common/script-parts';
import { LONGEST_SLEEP, Waiting } from '../common/waiting';
import type { Permits } from './permits';
import { ENTER, FIND_WAITER, INSPECTION, memberHeld, RELEASE, RENEW } from './scripts';

/** A ticket lasts for this many of the longest intervals between two polls, and for this many ms at least. */
const POLLS_MISSED = 3;
const LEAST_TICKET_TTL = 3_000;

/**
 * ms for which a ticket may be let in without another attempt. The process was alive this short a time ago: it is no more
 * likely to be gone than one that has the lock.
 */
const LET_IN_WITHIN = 2 * FRESH;

/**
 * ms; a number of permits that was reported before replaces the stored one only if it is newer by this much. Else a slow
 * repeat could undo a number that was given later.
 */
const SURELY_LATER = 1_000;

/** The arguments of ENTER about the number of permits. Its age has the time in it for which the machine was suspended. */
function numberOf(permits: Permits | undefined, hold: HoldOfProtocol): string[] {
  if (permits === undefined) return ['0', '0', ''];
  const { count, givenAt, drift, isOthers, reportedAt } = permits;
  const age = Math.max(0, Math.floor(hold.sentAt - givenAt + Math.max(0, hold.drift - drift)));
  return [String(count), String(age), isOthers ? '' : String(givenAt > reportedAt ? 0 : SURELY_LATER)];
}

/**
 * A lock that several owners may have at a time: see scripts.ts. Its steps:
 *
 * 1. A caller makes an attempt: it enters, or its ticket is in the queue then. A process has one ticket for each kind.
 * 2. Somebody releases the lock. The script lets in the first tickets in the queue, as many as may be inside, each with the
 *    ttl of its last attempt, and publishes one message that names them.
 * 3. A process reads its ticket in the message. It has the lock, without an answer of its own, if the message names the end of
 *    the lease that its last attempt asked for. Else the caller makes another attempt.
 */
class SharedProtocol extends AskedLock implements LockProtocol {
  readonly hasQueue = true;
  /** The permits of a semaphore, and `undefined` for a read/write lock. */
  permits: Permits | undefined;
  readonly #kind: SharedKind;
  readonly #names: LockNames;
  readonly #parts: RegistryParts;
  /** The ticket of the local caller that has the turn, when it called, and its arrival in the queue as Redis said it. */
  #ticket = '';
  #since = 0;
  #arrival = '';
  /** When the lease ends that its last attempt asked for, by the server's clock; '': that is not answered. */
  #leaseEnd = '';
  /** The messages before its last attempt, which was refused; `undefined`: it was not subscribed. */
  #heardBefore: number | undefined;
  /** The ticket that has the lock, by a message. `aloneAt`: as below. */
  #letIn: { readonly ticket: string; readonly leaseEnd: string; readonly aloneAt: number | undefined } | undefined;
  /** How many messages have said that a writer waits. */
  #writers = 0;
  /** The hold that was granted last. `aloneAt`: what `#writers` was when no writer waited; `undefined`: one did. */
  #last: { readonly hold: HoldOfProtocol; readonly aloneAt: number | undefined } | undefined;
  #waiting: Waiting | undefined;

  constructor(kind: SharedKind, names: LockNames, parts: RegistryParts) {
    super();
    this.#kind = kind;
    this.#names = names;
    this.#parts = parts;
  }

  override get hasLearnt(): boolean {
    return super.hasLearnt || this.#waiting !== undefined;
  }

  /** A lease that is let in may begin later than its ttl, and readers come to a hold later than the first one. */
  ttlFor({ ttl, renew }: LockRequest): number {
    return renew ? ttl : ttl + LET_IN_WITHIN;
  }

  /** Readers of this process are inside, and a writer waits for them: when they have left, one script does the rest. */
  standBack(wait: Wait): Promise<void> | undefined {
    const isClosed = entersTogether(this.#kind) && this.#last?.hold.isHeld && !this.#isOpen;
    return isClosed ? wait.standBack(FRESH) : undefined;
  }

  get hasNews(): boolean {
    return this.permits?.isNews === true;
  }

  attempt(hold: HoldOfProtocol, timeout: number): Promise<Grant | Refusal> {
    return this.#enter(hold, '', timeout, (_found, answer) => answer);
  }

  /** The lock goes to the first in the queue. That may be the next caller. A hold that is to be kept has none. */
  exchange(owner: string, to: HoldOfProtocol, timeout: number): Promise<Exchange> {
    const exchange = this.#enter(to, owner, timeout, (found, answer): Exchange => ({ found, answer }));
    return this.#parts.redis.isReplicated ? exchanged(exchange, (reply) => this.#found(ENTER, reply)) : exchange;
  }

  async wait(hold: HoldOfProtocol, refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    this.#waiting ??= this.#newWaiting();
    if (this.permits !== undefined) this.permits.waiting = this.#waiting;
    await this.#waiting.wait(refusal, wait);
    const { ticket, sentAt, ttl, drift } = hold;
    // Other readers of this process enter with the hold, which has to be fresh for that. An attempt finds that it is ours.
    const isLate = clock.now() - sentAt > (entersTogether(this.#kind) ? FRESH : LET_IN_WITHIN);
    const letIn = this.#letIn;
    // A message that was long on its way may be about an attempt before the last one, and a lease that is over by now.
    const isOfThis = letIn?.ticket === ticket && letIn.leaseEnd === this.#leaseEnd;
    if (!isOfThis || isLate) return NOT_GRANTED;
    this.#last = { hold, aloneAt: letIn.aloneAt };
    return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken: undefined, drift };
  }

  renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void {
    renew(this.#parts.redis, RENEW, this.#names.lock, [this.#kind, owner, String(ttl)], ttl, timeout, settle);
  }

  release(owner: string, timeout: number, keep?: Keep): Promise<Released> {
    const args = [this.#kind, owner, this.#names.channel, ...(keep === undefined ? [] : keepArguments(keep))];
    return this.#parts.redis.run(RELEASE, this.#keys, args, timeout, (reply) => this.#found(RELEASE, reply));
  }

  /**
   * For `FRESH` ms after it was granted: then the queue in Redis decides. A permit goes from caller to caller until then,
   * unless the number of permits is another one since. Readers enter beside others of their process while no writer waits,
   * as far as is known here.
   */
  mayPassOn(now: number, hold: HoldOfProtocol): boolean {
    const { permits } = this;
    const isOpen =
      permits === undefined
        ? entersTogether(this.#kind) && this.#last?.hold === hold && this.#isOpen
        : !permits.isNews && permits.changedAt <= hold.acquiredAt;
    return isOpen && now - hold.acquiredAt <= FRESH;
  }

  orphanLife({ longestTtl, isEnqueued }: HoldOfProtocol): number {
    return isEnqueued ? Math.max(longestTtl, this.#ticketTtl) : longestTtl;
  }

  /** ms for which this process has a permit that it passes on to the caller of `hold`: `FRESH`, and a last section. */
  #passesFor(hold: HoldOfProtocol, ending: string): number {
    const now = clock.now();
    const last = this.#last?.hold;
    if (!last?.isHeld || last.owner === ending || last.keep !== undefined || last.permits !== hold.permits) return 0;
    return this.mayPassOn(now, last) ? Math.ceil(last.acquiredAt + LET_IN_WITHIN - now) : 0;
  }

  /** No writer waits, as far as messages have said since the last grant: other readers of this process may enter. */
  get #isOpen(): boolean {
    return this.#last?.aloneAt === this.#writers;
  }

  /** ms */
  get #ticketTtl(): number {
    const { idleBetweenTries } = this.#parts.settings;
    return Math.ceil(Math.max(LEAST_TICKET_TTL, POLLS_MISSED * LONGEST_SLEEP * idleBetweenTries));
  }

  get #isFencing(): boolean {
    return isExclusive(this.#kind) && this.#parts.settings.fencing;
  }

  get #keys(): string[] {
    return [this.#names.lock, this.#names.companion('waiters')];
  }

  /** A message names tickets. It wakes the waiting caller only if its own ticket is one of them. */
  #newWaiting(): Waiting {
    const meaningOf = (message: string) => {
      const words = message.split(' ');
      const writerWaits = words.includes('wanted');
      if (writerWaits) this.#writers++;
      const ticket = `${this.#kind}:${this.#ticket}`;
      const leaseEnd = words.find((word) => word.startsWith(`${ticket}=`))?.slice(ticket.length + 1);
      if (leaseEnd === undefined) return words.includes(ticket) ? 'release' : undefined;
      this.#letIn = { ticket: this.#ticket, leaseEnd, aloneAt: writerWaits ? undefined : this.#writers };
      return 'release';
    };
    const { idleBetweenTries } = this.#parts.settings;
    const { channel, lock } = this.#names;
    return new Waiting({ lock, channels: [channel], meaningOf }, this.#parts.subscriber(false, true), idleBetweenTries);
  }

  /** `ending`: the owner whose lease ends, or ''. */
  #enter<T>(
    hold: HoldOfProtocol,
    ending: string,
    timeout: number,
    use: (found: Released, answer: Grant | Refusal) => T,
  ): Promise<T> {
    // The script enters it under this attempt's owner value, in place of that of an earlier one.
    const { owner: ticket, ticket: earlier, since, ttl, waits, sentAt, drift, leastLife } = hold;
    const { permits } = this;
    const isKnown = (this.#ticket === ticket || this.#ticket === earlier) && since === this.#since;
    if (waits) {
      if (!isKnown) this.#arrival = '';
      this.#ticket = ticket;
      this.#since = since;
      this.#leaseEnd = '';
    }
    const heardBefore = waits && isKnown && ending === '' ? this.#heardBefore : undefined;
    const hintsBefore = waits && this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
    const writers = this.#writers;
    const number = numberOf(permits, hold);
    const givenAt = permits?.givenAt ?? sentAt;
    // A token, replicas and a whole `minHold` take an attempt of its own. So does a ttl of which much would be over.
    // What no message says to this process, it would find late.
    const needsAttempt =
      this.#isFencing || this.#parts.redis.isReplicated || leastLife > 0 || this.#waiting?.isDeaf === true;
    const letInFor = needsAttempt ? 0 : Math.min(LET_IN_WITHIN, Math.floor(ttl / 2));
    const entersFor = permits === undefined ? letInFor : this.#passesFor(hold, ending);
    const position = [waits ? this.#arrival : '', hold.waited];
    const queueing = [waits ? '1' : '0', ...position, String(this.#ticketTtl), String(entersFor)];
    const read = (reply: unknown): Grant | Refusal => {
      const [, , value, pttl, owner, arrival, known, leaseEnd] = arrayIn(ENTER, reply, 3, 8);
      hold.ticket = ticket;
      const token = numberIn(ENTER, reply, value);
      if (pttl === undefined) {
        if (token < 1) throw new UnexpectedReplyError(ENTER.name, reply);
        permits?.reported(givenAt, token);
        if (heardBefore !== undefined && heardBefore === this.#waiting?.hints) this.#waiting.missedItsTurn();
        this.#last = { hold, aloneAt: token === 1 ? writers : undefined };
        const fencingToken = this.#isFencing ? token : undefined;
        return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
      }
      permits?.reported(givenAt, numberIn(ENTER, reply, known));
      if (waits && ticket === this.#ticket && since === this.#since) {
        this.#arrival = textIn(ENTER, reply, arrival);
        this.#leaseEnd = textIn(ENTER, reply, leaseEnd);
        this.#heardBefore = hintsBefore;
      }
      const remaining = remainingIn(ENTER, reply, pttl);
      return {
        granted: false,
        remaining,
        owner: ownerIn(owner || undefined),
        roundTrip: clock.now() - sentAt,
        hintsBefore,
      };
    };
    const keys = this.#isFencing ? [...this.#keys, this.#names.companion('fence')] : this.#keys;
    const args = [this.#kind, ticket, this.#names.channel, String(ttl), ...number, ...queueing, earlier, ending];
    return this.#parts.redis.run(ENTER, keys, args, timeout, (reply) => {
      const answer = read(reply);
      return use(this.#found(ENTER, reply), answer);
    });
  }

  /** What became of the lease that was to end. */
  #found(script: LockScript, reply: unknown): Released {
    const [found, notified] = arrayIn(script, reply, 2, 8);
    if (numberIn(script, reply, notified) < 0) this.#parts.warnNotificationRefused();
    return foundIn(script, reply, found);
  }
}

/** The shared locks of one registry in Redis. */
export function sharedBackend(parts: RegistryParts): SharedBackend {
  const fence = (names: LockNames) => (parts.settings.fencing ? [names.companion('fence')] : []);
  return {
    inspector: inspectorOf(
      parts.redis,
      INSPECTION,
      {
        keys: (names) => [names.lock, names.companion('waiters'), ...fence(names)],
        notification: (names) => [names.channel],
      },
      {
        queue: {
          script: FIND_WAITER,
          key: (names) => names.companion('waiters'),
          beginnings: (id) => SHARED_KINDS.map((kind) => `${kind}:${id}:`),
        },
      },
    ),
    open(kind, names) {
      // Throws for a name whose queue would be in another hash slot.
      names.companion('waiters');
      return new SharedProtocol(kind, names, parts);
    },
    leaseScripts: (kind) => leaseScripts(parts.redis, memberHeld(kind)),
  };
}
