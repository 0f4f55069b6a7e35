import { Availability } from '../core/availability';
import type { Hold } from '../core/hold';
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
} from '../core/protocol';
import type { Wait } from '../core/wait';
import { clock, reliableUntil } from '../internal/clock';
import { isKept } from '../owner-name';
import type { LockNames } from '../redis/names';
import type { Subscriber } from '../redis/subscriber';
import type { ReleaseReply } from './format/replies';
import type { ScriptedFormat } from './format/scripted-format';
import { contendedInspector } from './inspector';
import { type Pollers, USUAL_PACE_FOR, USUAL_PACE_OF_POLLING } from './pollers';
import type { Protocols, RegistryParts } from './registry-parts';
import type { Sharing } from './sharing';
import { Waiting } from './waiting';

/** ms in which waiters are notified of a lock that nobody took back. They poll if that fails. */
const NOTIFY_TIMEOUT = 1_000;

/** What the locks of a registry have in common that the processes contend for. */
interface ContendedParts {
  readonly parts: RegistryParts;
  readonly format: ScriptedFormat;
  /** `undefined`: waiters poll. */
  readonly subscriber: Subscriber | undefined;
  sharing(): Sharing;
}

/** The protocols of a lock type for which processes contend. */
export function contended(services: ContendedParts): Protocols {
  const { format, parts, subscriber } = services;
  return {
    inspector: contendedInspector(parts.redis, format, subscriber !== undefined),
    open(names) {
      format.assertNames(names);
      return new ContendedProtocol(names, services);
    },
  };
}

/**
 * A lock that the processes contend for: the first one that runs the script when it is free has it. It is the sum of a
 * format, a way of waiting, and a way of sharing. The callers of one process queue locally, and hand it over to each
 * other.
 */
class ContendedProtocol implements LockProtocol {
  readonly availability = new Availability();
  holder: Holder | undefined;
  readonly #names: LockNames;
  readonly #services: ContendedParts;
  readonly #pollers: Pollers | undefined;
  /** Made for the first hand-over, or the first release that others listen for: most locks need none. */
  #lazySharing: Sharing | undefined;
  /** When this process last acquired the lock from Redis: its slice begins. Whole ms: a fraction would cost memory. */
  #acquiredAt = 0;
  /** Made for the first caller that waits. */
  #waiting: Waiting | undefined;

  constructor(names: LockNames, services: ContendedParts) {
    this.#names = names;
    this.#services = services;
    this.#pollers = services.parts.pollers(services.subscriber ? USUAL_PACE_FOR : USUAL_PACE_OF_POLLING);
  }

  get queue(): 'local' {
    return 'local';
  }

  get #sharing(): Sharing {
    if (this.#lazySharing === undefined) {
      this.#lazySharing = this.#services.sharing();
      this.#lazySharing.acquired(this.#acquiredAt);
    }
    return this.#lazySharing;
  }

  get isActive(): boolean {
    return this.#waiting?.isActive || (this.#lazySharing?.isActive ?? false);
  }

  standBack(wait: Wait): Promise<void> | undefined {
    // A pause for pollers may begin while this process gives precedence to others.
    const leave = () => wait.standBack(this.#pollers?.freeFor ?? 0);
    return leave() ?? this.#lazySharing?.standBack(wait, this.#waiting)?.then(leave);
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, sentAt, drift } = hold;
    const hintsBefore = this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
    return this.#services.format.acquire(this.#names, hold, timeout, (found): Grant | Refusal => {
      if (!found.granted) {
        this.#lazySharing?.refused();
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
    const { format, parts, subscriber } = this.#services;
    const { idleBetweenTries } = parts.settings;
    // Another process has published a release: the holder may have lost the lock, by a command or a forced unlock.
    const onOthersRelease = () => this.holder?.confirmNow();
    this.#waiting ??= new Waiting(this.#names, format, subscriber, idleBetweenTries, this.#pollers, onOthersRelease);
    return this.#waiting.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  release(owner: string, timeout: number, now = clock.now()): Promise<Released> {
    return this.#release(owner, timeout, now, false);
  }

  #release(owner: string, timeout: number, sentAt: number, atSliceEnd: boolean): Promise<Released> {
    const { format } = this.#services;
    const toPollers = this.#pollers?.isDue(sentAt) ?? false;
    const hintsBefore = this.#waiting?.hints ?? 0;
    if (!toPollers) this.#waiting?.expectEcho(sentAt);
    return format.release(this.#names, owner, toPollers, sentAt, timeout, (reply) => {
      if (toPollers) this.#noteLeft(reply);
      else this.#noteReleased(reply, sentAt, hintsBefore, atSliceEnd);
      return reply.found;
    });
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    this.#waiting?.expectEcho(clock.now());
    return this.#services.format.keep(this.#names, owner, keep, timeout, ({ found, listeners }) => {
      if (listeners < 0) this.#services.parts.warnNotificationRefused();
      return found;
    });
  }

  /** Whether callers of one process may hand the lock over to each other at all. */
  get #handsOver(): boolean {
    return this.#services.parts.settings.handOver !== 0;
  }

  /**
   * In a slice it goes from caller to caller. At its end, the others are to have it: those that listen, if there are any;
   * where nobody can be seen, the next process that polls.
   */
  mayPassOn(now: number): boolean {
    // Each lease has a token of its own, which only Redis gives.
    if (!this.#handsOver || this.#services.format.isFencing || this.#pollers?.isDue(now)) return false;
    return !this.#sharing.isSliceOver(now);
  }

  confirmOrRelease(owner: string, ttl: number, timeout: number, now: number): Promise<Confirmed | Released> {
    if (!this.#handsOver || this.#pollers?.isDue(now)) return this.release(owner, timeout, now);
    const isSliceOver = this.#sharing.isSliceOver(now);
    const { format } = this.#services;
    if (isSliceOver && !(this.#sharing.yieldsToListeners && format.countsListeners)) {
      return this.#release(owner, timeout, now, true);
    }
    const hintsBefore = this.#waiting?.hints ?? 0;
    const ownListeners = isSliceOver ? (this.#waiting?.ownListeners ?? 0) : undefined;
    if (isSliceOver) this.#waiting?.expectEcho(now);
    return format.confirmOrRelease(this.#names, owner, ttl, now, ownListeners, timeout, (reply) => {
      if (!reply.isHeld) {
        this.#noteReleased(reply, now, hintsBefore, true);
        return reply.found;
      }
      if (isSliceOver) this.#sharing.renewSlice(now);
      return { until: reliableUntil(now, ttl), fencingToken: reply.fencingToken };
    });
  }

  orphanLife({ ttl }: Hold): number {
    return ttl;
  }

  #noteLeft({ found, listeners }: ReleaseReply): void {
    if (listeners < 0) this.#services.parts.warnNotificationRefused();
    if (found === 'released') this.#pollers?.left(clock.now(), () => this.#notifyWaiters());
  }

  /** No local caller has taken the lock back in time. If it is still free, waiters have to be notified. */
  async #notifyWaiters(): Promise<void> {
    const { format, parts } = this.#services;
    if (parts.redis.isClosed) return;
    // If that fails, they poll.
    await format.notifyIfFree(this.#names, NOTIFY_TIMEOUT).catch(() => undefined);
  }

  #noteReleased({ found, listeners }: ReleaseReply, sentAt: number, hintsBefore: number, atSliceEnd: boolean): void {
    if (found !== 'released') return;
    const { format, parts } = this.#services;
    if (listeners < 0) parts.warnNotificationRefused();
    // Where listeners cannot be counted: if this process listens, one other process may do so.
    const counted = format.countsListeners
      ? listeners - (this.#waiting?.ownListeners ?? 0)
      : Number(this.#waiting?.isSubscribed ?? false);
    const others = Math.max(atSliceEnd ? 1 : 0, counted);
    const answeredAt = clock.now();
    this.#pollers?.released(answeredAt);
    const sharing = atSliceEnd || others > 0 ? this.#sharing : this.#lazySharing;
    sharing?.released({ sentAt, answeredAt, others, hintsBefore, atSliceEnd });
  }
}
