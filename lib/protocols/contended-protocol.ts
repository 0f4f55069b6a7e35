import type { Acquisition } from '../acquire/acquisition';
import { Availability } from '../acquire/availability';
import type { Wait } from '../acquire/wait';
import { clock, reliableUntil } from '../internal/clock';
import type { LockNames } from '../redis/names';
import type { LockFormat, ReleaseReply } from './format';
import type { Waiting } from './polling';
import type { Grant, HandOver, LockProtocol, NotGranted, Ownership, Refusal, Released, RenewalMode } from './protocol';
import type { Sharing } from './sharing';

/** What a lock type is made of: a format, a way of waiting, and a way of sharing. */
export interface ContendedParts {
  readonly format: LockFormat;
  waiting(names: LockNames): Waiting;
  sharing(): Sharing;
  /** The server refused to publish a release. */
  onNotificationRefused(): void;
}

/**
 * A lock that the processes contend for: the first one that runs the script when it is free has it. It is the sum of a
 * format, a way of waiting, and a way of sharing. The callers of one process queue locally, and hand it over to each
 * other.
 */
export class ContendedProtocol implements LockProtocol {
  readonly availability = new Availability();
  readonly #names: LockNames;
  readonly #parts: ContendedParts;
  readonly #sharing: Sharing;
  /** Made for the first caller that waits. */
  #waiting: Waiting | undefined;

  constructor(names: LockNames, parts: ContendedParts) {
    this.#names = names;
    this.#parts = parts;
    this.#sharing = parts.sharing();
  }

  get queue(): 'local' {
    return 'local';
  }

  get isActive(): boolean {
    return this.#waiting?.isActive || this.#sharing.isActive;
  }

  standBack(wait: Wait): Promise<void> | undefined {
    return this.#sharing.standBack(wait, this.#waiting);
  }

  async attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, sentAt, drift } = acquisition;
    const heard = this.#waiting?.isHearing ? this.#waiting.hints : undefined;
    const reply = await this.#parts.format.acquire(this.#names, ticket, ttl, timeout);
    if (!reply.granted) {
      return { granted: false, remaining: reply.remaining, roundTrip: clock.now() - sentAt, heard };
    }
    this.#sharing.acquired(sentAt);
    return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken: reply.fencingToken, drift };
  }

  wait(_acquisition: Acquisition, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    this.#waiting ??= this.#parts.waiting(this.#names);
    return this.#waiting.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    return this.#parts.format.renew(this.#names, owner, ttl, mode, timeout);
  }

  release(owner: string, timeout: number): Promise<Released> {
    return this.#release(owner, timeout, false);
  }

  async #release(owner: string, timeout: number, atSliceEnd: boolean): Promise<Released> {
    const sentAt = clock.now();
    const hintsBefore = this.#waiting?.hints ?? 0;
    const reply = await this.#parts.format.release(this.#names, owner, timeout);
    this.#noteRelease(reply, sentAt, hintsBefore, atSliceEnd);
    return reply.found;
  }

  async handOver(owner: string, to: Acquisition, timeout: number): Promise<HandOver> {
    const { ticket, ttl, sentAt, drift } = to;
    const atSliceEnd = this.#sharing.isSliceOver(sentAt);
    // Where listeners cannot be counted, there may be some.
    if (atSliceEnd && !(this.#sharing.yieldsToListeners && this.#parts.format.countsListeners)) {
      return { handedOver: undefined, found: await this.#release(owner, timeout, true) };
    }
    const hintsBefore = this.#waiting?.hints ?? 0;
    const ownListeners = atSliceEnd ? this.#ownListeners : undefined;
    const reply = await this.#parts.format.handOver(this.#names, owner, ticket, ttl, ownListeners, timeout);
    if (!reply.handedOver) {
      this.#noteRelease(reply, sentAt, hintsBefore, true);
      return { handedOver: undefined, found: reply.found };
    }
    if (atSliceEnd) this.#sharing.renewSlice(sentAt);
    const { fencingToken } = reply;
    return { handedOver: { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift } };
  }

  orphanLife({ ttl }: Acquisition): number {
    return ttl;
  }

  get #ownListeners(): number {
    return this.#waiting?.ownListeners ?? 0;
  }

  #noteRelease({ found, listeners }: ReleaseReply, sentAt: number, hintsBefore: number, atSliceEnd: boolean): void {
    if (found !== 'released') return;
    if (listeners < 0) this.#parts.onNotificationRefused();
    // Where listeners cannot be counted: a process that listens itself has contended for the lock lately.
    const { countsListeners } = this.#parts.format;
    const counted = countsListeners ? listeners - this.#ownListeners : Number(this.#waiting?.isHearing ?? false);
    const others = Math.max(atSliceEnd ? 1 : 0, counted);
    this.#sharing.released({ sentAt, answeredAt: clock.now(), others, hintsBefore, atSliceEnd });
  }
}
