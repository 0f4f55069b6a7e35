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
import type { LockNames } from '../redis/names';
import { arrayIn, numberIn } from '../redis/reply';
import type { Script } from '../redis/script';
import type { Subscriber } from '../redis/subscriber';
import { keepArguments } from './format/script-parts';
import type { ScriptedFormat } from './format/scripted-format';
import { contendedInspector } from './inspector';
import { type Pollers, USUAL_PACE_FOR, USUAL_PACE_OF_POLLING } from './pollers';
import type { Protocols, RegistryParts } from './registry-parts';
import { type Sharing, TimeSlice, YieldToListeners } from './sharing';
import { Waiting } from './waiting';

/** ms in which waiters are notified of a lock that nobody took back. They poll if that fails. */
const NOTIFY_TIMEOUT = 1_000;

/** What the locks of a registry have in common. */
interface ContendedServices {
  readonly parts: RegistryParts;
  readonly format: ScriptedFormat;
  /** `undefined`: waiters poll. */
  readonly subscriber: Subscriber | undefined;
}

/** The protocols of a lock type for which processes contend. Waiters poll, or are notified of releases. */
export function contended(parts: RegistryParts, format: ScriptedFormat, waitersPoll = false): Protocols {
  const subscriber = waitersPoll ? undefined : parts.subscriber(format.isSharded, true);
  const services = { parts, format, subscriber };
  return {
    held: format.scripts.held,
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
  readonly #services: ContendedServices;
  readonly #pollers: Pollers | undefined;
  /** Made for the first hand-over, the first refusal, or the first release that others listen for: most locks need none. */
  #lazySharing: Sharing | undefined;
  /** When this process last acquired the lock from Redis: its slice begins. Whole ms: a fraction would cost memory. */
  #acquiredAt = 0;
  /** Made for the first caller that waits. */
  #waiting: Waiting | undefined;

  constructor(names: LockNames, services: ContendedServices) {
    this.#names = names;
    this.#services = services;
    this.#pollers = services.parts.pollers(services.subscriber ? USUAL_PACE_FOR : USUAL_PACE_OF_POLLING);
  }

  get #sharing(): Sharing {
    if (this.#lazySharing === undefined) {
      const { parts, subscriber } = this.#services;
      const { handOver, idleBetweenTries } = parts.settings;
      this.#lazySharing = subscriber ? new YieldToListeners(handOver) : new TimeSlice(idleBetweenTries, handOver);
      this.#lazySharing.acquired(this.#acquiredAt);
    }
    return this.#lazySharing;
  }

  get isActive(): boolean {
    return this.#waiting?.isActive || (this.#lazySharing?.isActive ?? false);
  }

  standBack(wait: Wait): Promise<void> | undefined {
    if (this.#pollers === undefined && this.#lazySharing === undefined) return undefined;
    // A pause for pollers may begin while this process gives precedence to others.
    const leave = () => wait.standBack(this.#pollers?.freeFor ?? 0);
    return leave() ?? this.#lazySharing?.standBack(wait, this.#waiting)?.then(leave);
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, sentAt } = hold;
    const { format, parts } = this.#services;
    const { ACQUIRE } = format.scripts;
    const hintsBefore = this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
    const read = (reply: unknown): Grant | Refusal => {
      const answer = format.answerIn(ACQUIRE, reply, 1, hold, hintsBefore);
      if (answer.granted) {
        this.#pollers?.acquired(sentAt);
        this.#acquiredAt = Math.floor(sentAt);
        this.#lazySharing?.acquired(sentAt);
      } else {
        const answeredAt = sentAt + answer.roundTrip;
        this.#pollers?.refused(answeredAt, answer, this.#waiting?.hints ?? 0);
        const sharing = this.#services.subscriber ? this.#lazySharing : this.#sharing;
        sharing?.refused(answer.owner, answeredAt);
      }
      return answer;
    };
    return parts.redis.run(ACQUIRE, format.keys(this.#names), [ticket, String(ttl)], timeout, read, sentAt);
  }

  wait(_hold: Hold, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const { format, parts, subscriber } = this.#services;
    const { idleBetweenTries } = parts.settings;
    // Another process has published a release: the holder may have lost the lock, by a command or a forced unlock.
    const onOthersRelease = () => this.holder?.confirmNow();
    this.#waiting ??= new Waiting(this.#names, format, subscriber, idleBetweenTries, this.#pollers, onOthersRelease);
    return this.#waiting.wait(refusal, wait, this.#lazySharing?.pollingInterval);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  release(owner: string, timeout: number, now = clock.now(), atSliceEnd = false): Promise<Released> {
    const { deleteCommand, scripts } = this.#services.format;
    const script = this.#pollers?.isDue(now) ? scripts.LEAVE : scripts.RELEASE;
    return this.#giveBack(script, [owner, deleteCommand], timeout, now, atSliceEnd);
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    const { KEEP } = this.#services.format.scripts;
    return this.#giveBack(KEEP, [owner, ...keepArguments(keep)], timeout, clock.now(), false);
  }

  #giveBack(script: Script, args: string[], timeout: number, now: number, atSliceEnd: boolean): Promise<Released> {
    const { format, parts } = this.#services;
    if (script !== format.scripts.LEAVE) this.#waiting?.expectEcho(now);
    const allArgs = [...args, ...format.notification(this.#names)];
    return parts.redis.run(
      script,
      [this.#names.lock],
      allArgs,
      timeout,
      this.#readRelease(script, now, atSliceEnd),
      now,
    );
  }

  /** Called before the script is sent. Reads what it found, and how many connections it notified, and notes it. */
  #readRelease(script: Script, sentAt: number, atSliceEnd: boolean): (reply: unknown) => Released {
    const { format, parts } = this.#services;
    const hintsBefore = this.#waiting?.hints ?? 0;
    return (reply) => {
      const [value, listeners = 0] = Array.isArray(reply) ? arrayIn(script, reply, 1, 2) : [reply];
      const found = format.foundIn(script, reply, value);
      const heard = numberIn(script, reply, listeners);
      if (heard < 0) parts.warnNotificationRefused();
      if (found !== 'released' || script === format.scripts.KEEP) return found;
      const answeredAt = clock.now();
      if (script === format.scripts.LEAVE) {
        this.#pollers?.left(answeredAt, () => this.#notifyWaiters());
        return found;
      }
      this.#pollers?.released(answeredAt);
      // Where listeners cannot be counted: if this process listens, one other process may do so.
      const counted = format.countsListeners
        ? heard - (this.#waiting?.ownListeners ?? 0)
        : Number(this.#waiting?.isSubscribed ?? false);
      const others = Math.max(atSliceEnd ? 1 : 0, counted);
      const sharing = others > 0 ? this.#sharing : this.#lazySharing;
      const areCounted = format.countsListeners;
      sharing?.released({ sentAt, answeredAt, others, areCounted, hintsBefore, atSliceEnd });
      return found;
    };
  }

  /**
   * In a slice it goes from caller to caller. At its end, the others are to have it: those that listen, if there are any;
   * where nobody can be seen, the next process that polls.
   */
  mayPassOn(now: number): boolean {
    const { format, parts } = this.#services;
    // Each lease has a token of its own, which only Redis gives.
    if (parts.settings.handOver === 0 || format.isFencing || this.#pollers?.isDue(now)) return false;
    return !this.#sharing.isSliceOver(now);
  }

  confirmOrRelease(owner: string, ttl: number, timeout: number, now: number): Promise<Confirmed | Released> {
    const names = this.#names;
    const { format, parts } = this.#services;
    if (parts.settings.handOver === 0 || this.#pollers?.isDue(now)) return this.release(owner, timeout, now);
    const isSliceOver = this.#sharing.isSliceOver(now);
    if (isSliceOver && !(this.#sharing.yieldsToListeners && format.countsListeners)) {
      return this.release(owner, timeout, now, true);
    }
    const args = [owner, String(ttl)];
    if (isSliceOver) {
      this.#waiting?.expectEcho(now);
      args.push(String(this.#waiting?.ownListeners ?? 0), format.deleteCommand, ...format.notification(names));
    }
    const { CONFIRM_OR_RELEASE: script } = format.scripts;
    const readRelease = this.#readRelease(script, now, true);
    const read = (reply: unknown): Confirmed | Released => {
      if (Array.isArray(reply)) return readRelease(reply);
      const fencingToken = format.tokenIn(script, reply);
      if (isSliceOver) this.#sharing.acquired(now);
      return { until: reliableUntil(now, ttl), fencingToken };
    };
    return parts.redis.run(script, format.keys(names), args, timeout, read, now);
  }

  orphanLife({ ttl }: Hold): number {
    return ttl;
  }

  /** No local caller has taken the lock back in time. If it is still free, waiters have to be notified. */
  async #notifyWaiters(): Promise<void> {
    const { format, parts } = this.#services;
    if (parts.redis.isClosed) return;
    const args = [...format.notification(this.#names)];
    const notified = parts.redis.run(format.scripts.NOTIFY, [this.#names.lock], args, NOTIFY_TIMEOUT, () => undefined);
    // If that fails, they poll.
    await notified.catch(() => undefined);
  }
}
