import { Availability } from '../../core/availability';
import type { Hold } from '../../core/hold';
import type { Permits } from '../../core/permits';
import type {
  Grant,
  Keep,
  LockProtocol,
  NotGranted,
  Ownership,
  Refusal,
  Released,
  RenewalMode,
} from '../../core/protocol';
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
import { ACQUIRE, RELEASE, RENEW } from './shared-scripts';

/** A ticket is kept for this many of the longest intervals between two polls, and for this many ms at least. */
const POLLS_MISSED = 3;
const TICKET_KEPT_AT_LEAST = 3_000;

/** What the shared locks of one kind have in common in a registry. */
interface SharedServices {
  readonly kind: SharedKind;
  readonly parts: RegistryParts;
  readonly subscriber: Subscriber;
}

/**
 * A lock that several owners may have at a time: see shared-scripts.ts. Processes queue in Redis, with one ticket for
 * each process and kind. A release publishes the tickets that may enter now; a process makes an attempt when its own is
 * one of them. The callers of a process take turns: the turn of a caller ends with its grant.
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
  #notification: Waiting | undefined;

  constructor(names: LockNames, services: SharedServices) {
    this.#names = names;
    this.#services = services;
  }

  get queue(): 'local' {
    return 'local';
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  standBack(): undefined {
    return undefined;
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt, drift } = hold;
    const { permits } = this;
    if (waits && ticket !== this.#ticket) {
      this.#ticket = ticket;
      this.#arrival = '';
    }
    hold.isEnqueued = waits;
    const hintsBefore = waits && this.#notification?.isSubscribed ? this.#notification.hints : undefined;
    const { count, givenAt, toldAt } = permits ?? { count: 0, givenAt: sentAt, toldAt: sentAt };
    const number = [String(count), String(Math.max(0, Math.floor(sentAt - givenAt))), givenAt > toldAt ? '1' : '0'];
    const queueing = [waits ? '1' : '0', waits ? this.#arrival : '', String(this.#ticketKeptFor)];
    const args = [this.#names.channel, String(ttl), ...number, ...queueing];
    return this.#run(ACQUIRE, this.#allKeys, ticket, args, timeout, (reply): Grant | Refusal => {
      if (Array.isArray(reply)) {
        const [pttl, owner, arrival, known] = arrayIn(ACQUIRE, reply, 4);
        permits?.told(givenAt, numberIn(ACQUIRE, reply, known));
        if (waits && ticket === this.#ticket) this.#arrival = textIn(ACQUIRE, reply, arrival);
        const remaining = remainingIn(ACQUIRE, reply, pttl);
        return { granted: false, remaining, owner: ownerIn(owner), roundTrip: clock.now() - sentAt, hintsBefore };
      }
      const token = numberIn(ACQUIRE, reply, reply);
      if (token < 1) throw new UnexpectedReplyError(ACQUIRE.name, reply);
      permits?.told(givenAt, count);
      const fencingToken = this.#isFencing ? token : undefined;
      return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    });
  }

  wait(_hold: Hold, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    this.#notification ??= this.#notifications();
    if (this.permits !== undefined) this.permits.waiting = this.#notification;
    return this.#notification.wait(refusal, wait);
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

  /** The lock is for the first in the queue. */
  mayPassOn(): boolean {
    return false;
  }

  orphanLife({ ttl, isEnqueued }: Hold): number {
    return isEnqueued ? Math.max(ttl, this.#ticketKeptFor) : ttl;
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
      isRelease: (message: string) => message.split(' ').includes(`${kind}:${this.#ticket}`),
      isLeftToPollers: () => false,
    };
    return new Waiting(this.#names, channels, subscriber, idleBetweenTries);
  }

  #giveBack(owner: string, keep: readonly string[], timeout: number): Promise<Released> {
    return this.#run(RELEASE, this.#keys, owner, [this.#names.channel, ...keep], timeout, (reply) => {
      const [found, notified] = arrayIn(RELEASE, reply, 2);
      if (numberIn(RELEASE, reply, notified) < 0) this.#services.parts.warnNotificationRefused();
      return foundIn(RELEASE, reply, found);
    });
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
