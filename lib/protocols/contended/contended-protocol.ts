import { isKept } from '../../api/owner-name';
import { Availability } from '../../core/availability';
import type { Hold } from '../../core/hold';
import type {
  Confirmed,
  Grant,
  Holder,
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
import type { LockNames } from '../../redis/names';
import type { ReleaseReply } from '../format/replies';
import type { ScriptedFormat } from '../format/scripted-format';
import type { Pollers } from '../pollers';
import type { Sharing } from '../sharing/sharing';
import type { Waiting } from '../waiting/waiting';

/** ms in which waiters are notified of a lock that nobody took back. They poll if that fails. */
const NOTIFY_TIMEOUT = 1_000;

/** The parts of a lock that the processes contend for: a format, a way of waiting, and a way of sharing. */
export interface ContendedParts {
  readonly format: ScriptedFormat;
  /** `onOthersRelease` is called for each message about a release by somebody else. */
  waiting(names: LockNames, pollers: Pollers | undefined, onOthersRelease: () => void): Waiting;
  sharing(): Sharing;
  /** Whether callers of one process may hand the lock over to each other at all. */
  readonly handsOver: boolean;
  pollers(): Pollers | undefined;
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
  holder: Holder | undefined;
  readonly #names: LockNames;
  readonly #parts: ContendedParts;
  readonly #pollers: Pollers | undefined;
  /** Made for the first hand-over, or the first release that others listen for: most locks need none. */
  #lazySharing: Sharing | undefined;
  /** When this process last acquired the lock from Redis: its slice begins. Whole ms: a fraction would cost memory. */
  #acquiredAt = 0;
  /** Made for the first caller that waits. */
  #waiting: Waiting | undefined;

  constructor(names: LockNames, parts: ContendedParts) {
    this.#names = names;
    this.#parts = parts;
    this.#pollers = parts.pollers();
  }

  get queue(): 'local' {
    return 'local';
  }

  private get sharing(): Sharing {
    if (this.#lazySharing === undefined) {
      this.#lazySharing = this.#parts.sharing();
      this.#lazySharing.acquired(this.#acquiredAt);
    }
    return this.#lazySharing;
  }

  get isActive(): boolean {
    return this.#waiting?.isActive || (this.#lazySharing?.isActive ?? false);
  }

  standBack(wait: Wait): Promise<void> | undefined {
    // A pause for pollers may begin while this process gives precedence to others.
    return (
      this.leaveToPollers(wait) ??
      this.#lazySharing?.standBack(wait, this.#waiting)?.then(() => this.leaveToPollers(wait))
    );
  }

  private leaveToPollers(wait: Wait): Promise<void> | undefined {
    return wait.standBack(this.#pollers?.freeFor ?? 0);
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, sentAt, drift } = hold;
    const hintsBefore = this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
    return this.#parts.format.acquire(this.#names, hold, timeout, (found): Grant | Refusal => {
      if (!found.granted) {
        this.#lazySharing?.refused?.();
        const now = clock.now();
        // A kept key ends without a message: a new holder after it is no sign of pollers.
        if (isKept(found.owner)) this.#pollers?.refusedByListener(now);
        else this.#pollers?.refused(now, found.remaining, this.#waiting?.hints ?? 0);
        const { remaining, owner } = found;
        return { granted: false, remaining, owner, roundTrip: now - sentAt, hintsBefore };
      }
      this.#pollers?.acquired(sentAt);
      this.#acquiredAt = Math.floor(sentAt);
      this.#lazySharing?.acquired(sentAt);
      const { fencingToken } = found;
      return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    });
  }

  wait(_hold: Hold, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    // Another process has published a release: the holder may have lost the lock, by a command or a forced unlock.
    this.#waiting ??= this.#parts.waiting(this.#names, this.#pollers, () => this.holder?.confirmNow());
    return this.#waiting.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#parts.format.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  release(owner: string, timeout: number, now = clock.now()): Promise<Released> {
    return this.#pollers?.isDue(now) ? this.leave(owner, timeout) : this.releaseAt(owner, timeout, now, false);
  }

  private releaseAt(owner: string, timeout: number, sentAt: number, atSliceEnd: boolean): Promise<Released> {
    const hintsBefore = this.#waiting?.hints ?? 0;
    this.#waiting?.expectEcho(sentAt);
    return this.#parts.format.release(this.#names, owner, sentAt, timeout, (reply) => {
      this.noteReleased(reply, sentAt, hintsBefore, atSliceEnd);
      return reply.found;
    });
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    this.#waiting?.expectEcho(clock.now());
    return this.#parts.format.keep(this.#names, owner, keep, timeout, ({ found, listeners }) => {
      if (listeners < 0) this.#parts.onNotificationRefused();
      return found;
    });
  }

  /**
   * In a slice it goes from caller to caller. At its end, the others are to have it: those that listen, if there are any;
   * where nobody can be seen, the next process that polls.
   */
  mayPassOn(now: number): boolean {
    const { format, handsOver } = this.#parts;
    // Each lease has a token of its own, which only Redis gives.
    return handsOver && !format.isFencing && !this.#pollers?.isDue(now) && !this.sharing.isSliceOver(now);
  }

  confirmOrRelease(owner: string, ttl: number, timeout: number, now: number): Promise<Confirmed | Released> {
    if (!this.#parts.handsOver || this.#pollers?.isDue(now)) return this.release(owner, timeout, now);
    const isSliceOver = this.sharing.isSliceOver(now);
    const { format } = this.#parts;
    if (isSliceOver && !(this.sharing.yieldsToListeners && format.countsListeners)) {
      return this.releaseAt(owner, timeout, now, true);
    }
    const hintsBefore = this.#waiting?.hints ?? 0;
    const ownListeners = isSliceOver ? (this.#waiting?.ownListeners ?? 0) : undefined;
    if (isSliceOver) this.#waiting?.expectEcho(now);
    return format.confirmOrRelease(this.#names, owner, ttl, now, ownListeners, timeout, (reply) => {
      if (!reply.isHeld) {
        this.noteReleased(reply, now, hintsBefore, true);
        return reply.found;
      }
      if (isSliceOver) this.sharing.renewSlice(now);
      return { until: reliableUntil(now, ttl), fencingToken: reply.fencingToken };
    });
  }

  /** Releases the lock to pollers, for a moment. */
  private leave(owner: string, timeout: number): Promise<Released> {
    return this.#parts.format.leaveToPollers(this.#names, owner, timeout, ({ found, listeners }) => {
      if (listeners < 0) this.#parts.onNotificationRefused();
      if (found === 'released') this.#pollers?.left(clock.now(), () => this.notifyWaiters());
      return found;
    });
  }

  /** No local caller has taken the lock back in time. If it is still free, waiters have to be notified. */
  private async notifyWaiters(): Promise<void> {
    if (this.#parts.format.isClosed) return;
    // If that fails, they poll.
    await this.#parts.format.notifyIfFree(this.#names, NOTIFY_TIMEOUT).catch(() => undefined);
  }

  orphanLife({ ttl }: Hold): number {
    return ttl;
  }

  private noteReleased(
    { found, listeners }: ReleaseReply,
    sentAt: number,
    hintsBefore: number,
    atSliceEnd: boolean,
  ): void {
    if (found !== 'released') return;
    if (listeners < 0) this.#parts.onNotificationRefused();
    // Where listeners cannot be counted: if this process listens, one other process may do so.
    const { countsListeners } = this.#parts.format;
    const counted = countsListeners
      ? listeners - (this.#waiting?.ownListeners ?? 0)
      : Number(this.#waiting?.isSubscribed ?? false);
    const others = Math.max(atSliceEnd ? 1 : 0, counted);
    const answeredAt = clock.now();
    this.#pollers?.released(answeredAt);
    const sharing = atSliceEnd || others > 0 ? this.sharing : this.#lazySharing;
    sharing?.released({ sentAt, answeredAt, others, hintsBefore, atSliceEnd });
  }
}
