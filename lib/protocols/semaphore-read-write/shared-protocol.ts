import { Availability } from '../../core/availability';
import { FRESH, type Hold } from '../../core/hold';
import type { Permits } from '../../core/permits';
import {
  type Exchange,
  type Grant,
  type Keep,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../../core/protocol';
import type { LockRequest } from '../../core/request';
import type { Wait } from '../../core/wait';
import { clock, reliableUntil } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import { arrayIn, numberIn, textIn } from '../../redis/reply';
import type { LockScript } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import { foundIn, ownerIn, ownershipIn, remainingIn, unknownOwnership } from '../format/replies';
import { keepArguments } from '../format/script-parts';
import type { RegistryParts } from '../registry-parts';
import { LONGEST_SLEEP, Waiting } from '../waiting';
import type { SharedKind } from './shared-kinds';
import { ACQUIRE, EXCHANGE, RELEASE, RENEW } from './shared-scripts';

/** A ticket is kept for this many of the longest intervals between two polls, and for this many ms at least. */
const POLLS_MISSED = 3;
const TICKET_KEPT_AT_LEAST = 3_000;

/**
 * ms for which a ticket may be let in without another attempt. The process was alive this short a time ago: it is no more
 * likely to be gone than one that has the lock.
 */
const LET_IN_WITHIN = 2 * FRESH;

/** What the shared locks of one kind have in common in a registry. */
interface SharedServices {
  readonly kind: SharedKind;
  readonly parts: RegistryParts;
  readonly subscriber: Subscriber;
}

/**
 * A lock that several owners may have at a time: see shared-scripts.ts. Processes queue in Redis, with one ticket for
 * each process and kind. A release lets in the tickets that may enter now. A message says so, and its process enters
 * with the ttl that it asked for when it last made an attempt, or makes another one.
 */
export class SharedProtocol implements LockProtocol {
  readonly availability = new Availability();
  /** Of a semaphore. */
  permits: Permits | undefined;
  readonly #names: LockNames;
  readonly #services: SharedServices;
  /** Of the local caller that has the turn, with its arrival in the queue, as far as Redis has said it. */
  #ticket = '';
  #arrival = '';
  /** The ticket that has the lock, by a message. `aloneAt`: as below. */
  #letIn: { readonly ticket: string; readonly aloneAt: number | undefined } | undefined;
  /** How often a message has said that a writer waits. */
  #wanted = 0;
  /** The hold that was granted last. `aloneAt`: what `#wanted` was when no writer waited; `undefined`: one did. */
  #last: { readonly hold: Hold; readonly aloneAt: number | undefined } | undefined;
  #notification: Waiting | undefined;

  constructor(names: LockNames, services: SharedServices) {
    this.#names = names;
    this.#services = services;
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  /** A lease that is let in may begin later than its ttl, and readers come to a hold later than the first one. */
  ttlFor({ ttl, renew }: LockRequest): number {
    return renew ? ttl : ttl + LET_IN_WITHIN;
  }

  /** Readers of this process are inside, and a writer waits for them: when they have left, one script does the rest. */
  standBack(wait: Wait): Promise<void> | undefined {
    const isClosed = this.#services.kind === 'read' && this.#last?.hold.isHeld && !this.#isOpen;
    return isClosed ? wait.standBack(FRESH) : undefined;
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { args, granted, refused } = this.#ask(hold, ACQUIRE);
    return this.#run(ACQUIRE, this.#allKeys, hold.ticket, args, timeout, (reply): Grant | Refusal =>
      Array.isArray(reply) ? refused(reply, arrayIn(ACQUIRE, reply, 4)) : granted(reply, reply),
    );
  }

  /** The lock goes to the first in the queue. That may be the next caller. */
  exchange(owner: string, to: Hold, timeout: number, keep?: Keep): Promise<Exchange> {
    if (keep !== undefined) return this.keep(owner, keep, timeout).then((found) => ({ found, answer: undefined }));
    const { args, granted, refused } = this.#ask(to, EXCHANGE);
    return this.#run(EXCHANGE, this.#allKeys, to.ticket, [...args, owner], timeout, (reply) => {
      const [found, notified, grant, ...refusal] = arrayIn(EXCHANGE, reply, 3, 7);
      const answer = refusal.length === 0 ? granted(reply, grant) : refused(reply, refusal);
      return { found: this.#found(EXCHANGE, reply, found, notified), answer };
    });
  }

  async wait(hold: Hold, refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    this.#notification ??= this.#notifications();
    if (this.permits !== undefined) this.permits.waiting = this.#notification;
    await this.#notification.wait(refusal, wait);
    const { ticket, sentAt, ttl, drift } = hold;
    const { kind, parts } = this.#services;
    // Other readers of this process enter with the hold, which has to be fresh for that. An attempt finds that it is ours.
    const isLate = clock.now() - sentAt > (kind === 'read' ? FRESH : LET_IN_WITHIN);
    if (this.#letIn?.ticket !== ticket || isLate || parts.redis.mayBeOutdated(sentAt)) return NOT_GRANTED;
    this.#last = { hold, aloneAt: this.#letIn.aloneAt };
    return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken: undefined, drift };
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    const sentAt = clock.now();
    const { kind, parts } = this.#services;
    const read = (reply: unknown): Ownership => ownershipIn(RENEW, reply, sentAt, ttl);
    const fail = (cause: unknown): void => settle(unknownOwnership(cause, read));
    parts.redis.send(RENEW, [this.#names.lock], [kind, owner, String(ttl), mode], timeout, read, settle, fail);
  }

  release(owner: string, timeout: number): Promise<Released> {
    return this.#giveBack(owner, [], timeout);
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    return this.#giveBack(owner, keepArguments(keep), timeout);
  }

  /**
   * For `FRESH` ms after it was granted: then the queue in Redis decides. A permit goes from caller to caller until then,
   * unless the number of permits is another one since. Readers enter beside others of their process while no writer waits,
   * as far as is known here.
   */
  mayPassOn(now: number, hold: Hold): boolean {
    const { permits } = this;
    const isOpen =
      permits === undefined
        ? this.#services.kind === 'read' && this.#last?.hold === hold && this.#isOpen
        : !permits.isNews && permits.changedAt <= hold.acquiredAt;
    return isOpen && now - hold.acquiredAt <= FRESH;
  }

  orphanLife({ ttl, isEnqueued }: Hold): number {
    return isEnqueued ? Math.max(ttl, this.#ticketKeptFor) : ttl;
  }

  get #isOpen(): boolean {
    return this.#last?.aloneAt === this.#wanted;
  }

  /** ms */
  get #ticketKeptFor(): number {
    const { idleBetweenTries } = this.#services.parts.settings;
    return Math.ceil(Math.max(TICKET_KEPT_AT_LEAST, POLLS_MISSED * LONGEST_SLEEP * idleBetweenTries));
  }

  get #isFencing(): boolean {
    const { kind, parts } = this.#services;
    return kind === 'write' && parts.settings.fencing;
  }

  get #keys(): string[] {
    return [this.#names.lock, this.#names.companion('waiters')];
  }

  get #allKeys(): string[] {
    return this.#isFencing ? [...this.#keys, this.#names.companion('fence')] : this.#keys;
  }

  /** A message names tickets. It wakes the waiting caller only if its own ticket is one of them. */
  #notifications(): Waiting {
    const { kind, parts, subscriber } = this.#services;
    const { idleBetweenTries } = parts.settings;
    const channels = {
      channels: (names: LockNames) => [names.channel],
      isRelease: (message: string) => {
        const words = message.split(' ');
        const isWanted = words.includes('wanted');
        if (isWanted) this.#wanted++;
        const ticket = `${kind}:${this.#ticket}`;
        if (!words.includes(`${ticket}=`)) return words.includes(ticket);
        this.#letIn = { ticket: this.#ticket, aloneAt: isWanted ? undefined : this.#wanted };
        return true;
      },
      isLeftToPollers: () => false,
    };
    return new Waiting(this.#names, channels, subscriber, idleBetweenTries);
  }

  /** What ACQUIRE is called with, after the owner; and what its reply says: `value`, or `values`, of it. */
  #ask(hold: Hold, script: LockScript) {
    const { ticket, ttl, waits, sentAt, drift, leastLife } = hold;
    const { permits } = this;
    if (waits && ticket !== this.#ticket) {
      this.#ticket = ticket;
      this.#arrival = '';
    }
    hold.isEnqueued = waits;
    const hintsBefore = waits && this.#notification?.isSubscribed ? this.#notification.hints : undefined;
    const wanted = this.#wanted;
    const { count, givenAt, toldAt } = permits ?? { count: 0, givenAt: sentAt, toldAt: sentAt };
    const number = [String(count), String(Math.max(0, Math.floor(sentAt - givenAt))), givenAt > toldAt ? '1' : '0'];
    // A token, replicas and a whole `minHold` take an attempt of its own. So does a ttl of which much would be over.
    const isOwn = permits !== undefined || this.#isFencing || this.#services.parts.redis.isReplicated || leastLife > 0;
    const letInFor = isOwn ? 0 : Math.min(LET_IN_WITHIN, Math.floor(ttl / 2));
    const queueing = [waits ? '1' : '0', waits ? this.#arrival : '', String(this.#ticketKeptFor), String(letInFor)];
    return {
      args: [this.#names.channel, String(ttl), ...number, ...queueing],
      granted: (reply: unknown, value: unknown): Grant => {
        const token = numberIn(script, reply, value);
        if (token < 1) throw new UnexpectedReplyError(script.name, reply);
        permits?.told(givenAt, token);
        this.#last = { hold, aloneAt: token === 1 ? wanted : undefined };
        const fencingToken = this.#isFencing ? token : undefined;
        return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
      },
      refused: (reply: unknown, [pttl, owner, arrival, known]: readonly unknown[]): Refusal => {
        permits?.told(givenAt, numberIn(script, reply, known));
        if (waits && ticket === this.#ticket) this.#arrival = textIn(script, reply, arrival);
        const remaining = remainingIn(script, reply, pttl);
        return { granted: false, remaining, owner: ownerIn(owner), roundTrip: clock.now() - sentAt, hintsBefore };
      },
    };
  }

  #giveBack(owner: string, keep: readonly string[], timeout: number): Promise<Released> {
    return this.#run(RELEASE, this.#keys, owner, [this.#names.channel, ...keep], timeout, (reply) => {
      const [found, notified] = arrayIn(RELEASE, reply, 2);
      return this.#found(RELEASE, reply, found, notified);
    });
  }

  #found(script: LockScript, reply: unknown, found: unknown, notified: unknown): Released {
    if (numberIn(script, reply, notified) < 0) this.#services.parts.warnNotificationRefused();
    return foundIn(script, reply, found);
  }

  #run<T>(
    script: LockScript,
    keys: string[],
    owner: string,
    args: readonly string[],
    timeout: number,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { kind, parts } = this.#services;
    return parts.redis.run(script, keys, [kind, owner, ...args], timeout, read);
  }
}
