import { traitsOf } from '../../api/lock-types';
import { holderOf, isWithoutHolder } from '../../api/owner-name';
import { AskedLock } from '../../core/availability';
import type {
  Confirmation,
  Confirmed,
  Grant,
  HoldOfProtocol,
  Keep,
  LockProtocol,
  NotGranted,
  Ownership,
  Refusal,
  Released,
  Travel,
} from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock, reliableUntil } from '../../internal/clock';
import { LockNames } from '../../redis/names';
import type { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import { inspectorOf } from './inspector';
import type { Protocols, RegistryParts } from './registry-parts';
import { keepArguments, LISTENERS } from './script-parts';
import type { ScriptedFormat } from './scripted-format';
import { type Pollers, USUAL_PACE_FOR, USUAL_PACE_OF_POLLING } from './shared-with-pollers';
import { LONGEST_SLEEP, type Waited, Waiting } from './waiting';
import { WantedMark } from './wanted';
import { TimeSlice, type Yielding, YieldToListeners } from './yielding';

/** ms in which waiters are notified of a lock that nobody took back. They poll if that fails. */
const NOTIFY_TIMEOUT = 1_000;

/** The protocols of a lock type for which processes contend. Waiters poll, or are notified of releases. */
export function contended(parts: RegistryParts, format: ScriptedFormat): Protocols {
  const { polls } = traitsOf(parts.settings.lockType);
  const subscriber = polls ? undefined : parts.subscriber(format.isSharded, true);
  const count = format.isSharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const listeners = (names: LockNames) => [count, format.channels(names)[0] as string];
  const areCounted = subscriber !== undefined && format.countsListeners;
  const kind: ContendedKind = { parts, format, subscriber };
  return {
    held: format.scripts.held,
    inspector: inspectorOf(parts.redis, format.scripts.inspection, format, {
      listeners: areCounted ? listeners : undefined,
    }),
    open(names) {
      format.assertNames(names);
      return new ContendedProtocol(names, kind);
    },
  };
}

/** What the locks of a registry share. */
interface ContendedKind {
  readonly parts: RegistryParts;
  readonly format: ScriptedFormat;
  /** `undefined`: waiters poll, as they do where it cannot listen. */
  readonly subscriber: Subscriber | undefined;
}

/**
 * A lock that the processes contend for: the first one that runs the script when it is free has it. It is the sum of a
 * format, a way of waiting, and a way of yielding. The callers of one process queue locally, and pass the hold
 * on to each other.
 */
class ContendedProtocol extends AskedLock implements LockProtocol {
  holder: HoldOfProtocol | undefined;
  readonly #key: string;
  readonly #lock: string;
  readonly #kind: ContendedKind;
  readonly #pollers: Pollers | undefined;
  /** Made for the first hand-over, the first refusal, or the first release that others listen for: most locks need none. */
  #lazyYielding: Yielding | undefined;
  /** When this process last acquired the lock from Redis: its slice begins. Whole ms: a fraction would cost memory. */
  #acquiredAt = 0;
  /** Made for the first caller that waits. */
  #waiting: Waiting | undefined;

  constructor({ key, lock }: LockNames, kind: ContendedKind) {
    super();
    this.#key = key;
    this.#lock = lock;
    this.#kind = kind;
    this.#pollers = kind.parts.pollers(kind.subscriber ? USUAL_PACE_FOR : USUAL_PACE_OF_POLLING);
  }

  private get names(): LockNames {
    return new LockNames(this.#kind.parts.settings.registryKey, this.#key, this.#lock);
  }

  override get hasLearnt(): boolean {
    if (super.hasLearnt || this.#lazyYielding?.hasLearnt) return true;
    return (this.#pollers ?? this.#waiting) !== undefined;
  }

  /** Waiters listen for releases: so a process can find out whether there are any. */
  private get areHeard(): boolean {
    return this.#kind.subscriber?.mayListen === true;
  }

  private get yielding(): Yielding {
    if (this.#lazyYielding === undefined) {
      const { handOver, idleBetweenTries } = this.#kind.parts.settings;
      this.#lazyYielding = this.areHeard ? new YieldToListeners(handOver) : new TimeSlice(idleBetweenTries, handOver);
      this.#lazyYielding.acquired(this.#acquiredAt);
    }
    return this.#lazyYielding;
  }

  standBack(wait: Wait): Promise<void> | undefined {
    if (this.#pollers === undefined && this.#lazyYielding === undefined) return undefined;
    // A pause for pollers may begin while this process gives precedence to others.
    const leave = () => wait.standBack(this.#pollers?.freeFor ?? 0);
    return leave() ?? this.#lazyYielding?.standBack(wait, this.#waiting)?.then(leave);
  }

  attempt(hold: HoldOfProtocol, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, sentAt } = hold;
    const format = this.#kind.format;
    const { ACQUIRE } = format.scripts;
    const hintsBefore = this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
    const read = (reply: unknown): Grant | Refusal => {
      const answer = format.answerIn(ACQUIRE, reply, 1, hold, hintsBefore);
      if (answer.granted) {
        this.#pollers?.acquired(sentAt);
        this.#waiting?.acquired();
        this.#acquiredAt = Math.floor(sentAt);
        this.#lazyYielding?.acquired(sentAt);
      } else {
        const answeredAt = sentAt + answer.roundTrip;
        this.#pollers?.refused(answeredAt, answer, this.#waiting?.hints ?? 0);
        const yielding = this.areHeard ? this.#lazyYielding : this.yielding;
        // What is kept, or detached, is no slice of another owner.
        yielding?.refused(answer.owner && holderOf(answer.owner), answeredAt);
      }
      return answer;
    };
    return this.#kind.parts.redis.run(ACQUIRE, format.keys(this.names), [ticket, String(ttl)], timeout, read, sentAt);
  }

  wait(_hold: HoldOfProtocol, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    this.#waiting ??= this.newWaiting();
    // What is kept until its `minHold` ends is free then without a message. What was detached has another owner then.
    const holder = isWithoutHolder(refusal.owner) ? undefined : refusal.owner;
    // It asks no oftener than others that poll: they would hardly meet the lock free.
    const isUsual = this.#pollers !== undefined && !wait.holdsOthers;
    const interval = isUsual ? undefined : this.#lazyYielding?.pollingInterval(wait.holdsOthers);
    return this.#waiting.wait(refusal, wait, interval, holder);
  }

  watch(onHint: () => void): () => void {
    this.#waiting ??= this.newWaiting();
    return this.#waiting.watch(onHint);
  }

  get hints(): number | undefined {
    return this.#waiting?.isSubscribed ? this.#waiting.hints : undefined;
  }

  get pollingInterval(): number {
    return (this.#waiting ?? this.newWaiting()).pollingInterval;
  }

  private newWaiting(): Waiting {
    const format = this.#kind.format;
    const names = this.names;
    const { parts, subscriber } = this.#kind;
    const { redis, settings, id } = parts;
    const { idleBetweenTries } = settings;
    const key = subscriber && names.companionOrNone('wanted');
    const waited: Waited = {
      lock: names.lock,
      channels: format.channels(names),
      meaningOf: (message) => format.meaningOf(message, names),
      mark: key === undefined ? undefined : new WantedMark(redis, key, id, LONGEST_SLEEP * idleBetweenTries),
    };
    // The holder may have lost the lock, by a command or a forced unlock.
    const onMessage = () => this.holder?.confirmSoon();
    return new Waiting(waited, subscriber, idleBetweenTries, this.#pollers, onMessage);
  }

  renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#kind.format.renew(this.names, owner, ttl, timeout, settle);
  }

  release(owner: string, timeout: number, keep?: Keep, now = clock.now(), atSliceEnd = false): Promise<Released> {
    const names = this.names;
    const { deleteCommand, scripts } = this.#kind.format;
    const usual = this.#pollers?.isDue(now) ? scripts.LEAVE : scripts.RELEASE;
    const script = keep === undefined ? usual : scripts.KEEP;
    const how = keep === undefined ? [deleteCommand] : keepArguments(keep);
    const args = [owner, ...how, ...this.#kind.format.notification(names)];
    const read = this.readRelease(script, now, atSliceEnd);
    return this.#kind.parts.redis.run(script, [names.lock], args, timeout, read, now);
  }

  /** Called before the script is sent. Reads what it found, and how many connections it notified, and notes it. */
  private readRelease(script: Script, sentAt: number, atSliceEnd: boolean): (reply: unknown) => Released {
    const format = this.#kind.format;
    const hintsBefore = this.#waiting?.hints ?? 0;
    return (reply) => {
      const { found, listeners, headStart } = format.givenBackIn(script, reply);
      if (listeners === LISTENERS.refused) this.#kind.parts.warnNotificationRefused();
      if (found !== 'released' || script === format.scripts.KEEP) return found;
      const answeredAt = clock.now();
      if (script === format.scripts.LEAVE) {
        this.#pollers?.left(answeredAt, () => this.notifyWaiters());
        return found;
      }
      this.#pollers?.released(answeredAt);
      // Where listeners cannot be counted: if this process listens, one other process may do so.
      const areCounted = format.countsListeners && listeners >= 0;
      const { isSubscribed = false, ownListeners = 0 } = this.#waiting ?? {};
      const others = Math.max(atSliceEnd ? 1 : 0, areCounted ? listeners - ownListeners : Number(isSubscribed));
      const yielding = others > 0 ? this.yielding : this.#lazyYielding;
      yielding?.released({ sentAt, answeredAt, others, areCounted, hintsBefore, atSliceEnd, headStart });
      return found;
    };
  }

  /**
   * In a slice it goes from caller to caller. At its end, the others are to have it: those that listen, if there are any;
   * where nobody can be seen, the next process that polls.
   */
  mayPassOn(now: number): boolean {
    if (this.#kind.parts.settings.handOver === 0 || this.#pollers?.isDue(now)) return false;
    return !this.yielding.isSliceOver(now);
  }

  confirmOrRelease({ owner, ttl, timeout, now, callers }: Confirmation): Promise<Confirmed | Released> {
    const names = this.names;
    const format = this.#kind.format;
    const { redis, settings } = this.#kind.parts;
    if (settings.handOver === 0 || this.#pollers?.isDue(now)) return this.release(owner, timeout, undefined, now);
    const isSliceOver = this.yielding.isSliceOver(now);
    // Others can be found, in the same script: those that listen, and those that have left a mark.
    const mark = this.areHeard && format.countsListeners ? names.companionOrNone('wanted') : undefined;
    if (isSliceOver && mark === undefined) return this.release(owner, timeout, undefined, now, true);
    const keys = format.keys(names);
    const args = [owner, String(ttl)];
    if (format.isFencing) args.push(String(format.tokensFor(callers)));
    else if (isSliceOver) args.push('');
    if (isSliceOver) {
      keys.push(mark as string);
      args.push(String(this.#waiting?.ownListeners ?? 0), this.#kind.parts.id, format.deleteCommand);
      args.push(...format.notification(names));
    }
    const { CONFIRM_OR_RELEASE: script } = format.scripts;
    const readRelease = this.readRelease(script, now, true);
    const read = (reply: unknown): Confirmed | Released => {
      if (Array.isArray(reply)) return readRelease(reply);
      if (isSliceOver) this.yielding.acquired(now);
      return { until: reliableUntil(now, ttl), ...format.tokensIn(script, reply) };
    };
    return redis.run(script, keys, args, timeout, read, now);
  }

  get travel(): Travel {
    return this.#kind.format.travelOf(this.names);
  }

  orphanLife({ longestTtl }: HoldOfProtocol): number {
    return longestTtl;
  }

  /** No local caller has taken the lock back in time. If it is still free, waiters have to be notified. */
  private async notifyWaiters(): Promise<void> {
    const { redis } = this.#kind.parts;
    if (redis.isClosed) return;
    const { lock } = this.names;
    const args = [...this.#kind.format.notification(this.names)];
    // If that fails, they poll.
    await redis
      .run(this.#kind.format.scripts.NOTIFY, [lock], args, NOTIFY_TIMEOUT, () => undefined)
      .catch(() => undefined);
  }
}
