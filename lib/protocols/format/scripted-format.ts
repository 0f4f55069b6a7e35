import type { Keep, Ownership, Released, RenewalMode } from '../../core/protocol';
import { clock } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import type { ReleaseChannels } from '../waiting/notification';
import { keepArguments } from './left-to-keep';
import {
  type Acquired,
  type ConfirmReply,
  foundIn,
  ownerIn,
  ownershipIn,
  type ReleaseReply,
  remainingIn,
  unknownOwnership,
} from './replies';

/**
 * The scripts of a format, as its modules name them. All formats have the same KEYS, ARGV and replies, except for what
 * `notification` adds.
 */
interface FormatScripts {
  readonly ACQUIRE: Script;
  readonly RELEASE: Script;
  readonly LEAVE: Script;
  readonly KEEP: Script;
  /** Publishes that a lock is free, if it is. KEYS: lock. ARGV: what `notification` returns. */
  readonly NOTIFY: Script;
  /** For the end of a slice. */
  readonly CONFIRM_OR_RELEASE: Script;
  readonly RENEW: Script;
  /** Asks about a lock without extending it. */
  readonly CONFIRM: Script;
}

/** An acquisition whose command is sent now. */
interface Sent {
  readonly ticket: string;
  /** ms */
  readonly ttl: number;
  readonly sentAt: number;
}

/**
 * How a lock is written in Redis: as Spring's string, or as Redisson's hash. One object for each registry, which runs
 * the scripts of its format and reads their replies. Timeouts are in ms. `use` converts the parsed reply to the result:
 * a promise for each step between the reply and the caller would cost as much as the rest of a call.
 */
export abstract class ScriptedFormat implements ReleaseChannels {
  protected readonly redis: Redis;
  readonly isFencing: boolean;
  readonly #scripts: FormatScripts;
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, isFencing: boolean, scripts: FormatScripts) {
    this.redis = redis;
    this.isFencing = isFencing;
    this.#scripts = scripts;
  }

  /** The registry is closed. */
  get isClosed(): boolean {
    return this.redis.isClosed;
  }

  /** Whether the channels are sharded. */
  abstract readonly isSharded: boolean;
  /** Whether PUBLISH in a script counts all listeners. On a cluster a channel that is not sharded does not. */
  abstract readonly countsListeners: boolean;
  abstract channels(names: LockNames): readonly string[];
  abstract isRelease(message: string, names: LockNames): boolean;
  abstract isLeftToPollers(message: string): boolean;
  /** The key of the fencing counter. Throws `RangeError` when it could not share the lock's hash slot. */
  protected abstract fence(names: LockNames): string;
  /** How a release is published: the last arguments of the scripts that release. */
  abstract notification(names: LockNames): readonly string[];

  /** Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  assertNames(names: LockNames): void {
    if (this.isFencing) this.fence(names);
  }

  /** The command that deletes a lock, for the script that releases it. */
  get deleteCommand(): 'UNLINK' | 'DEL' {
    return this.#deleteCommand;
  }

  /** Reads what a release found. Where the server refused UNLINK (2), later releases delete by DEL at once. */
  foundIn(script: Script, reply: unknown, value: unknown): Released {
    if (Number(value) === 2) this.#deleteCommand = 'DEL';
    return foundIn(script, reply, value);
  }

  acquire<T>(
    names: LockNames,
    { ticket, ttl, sentAt }: Sent,
    timeout: number,
    use: (found: Acquired) => T,
  ): Promise<T> {
    const read = (reply: unknown): T => use(this.#acquired(reply));
    return this.redis.run(this.#scripts.ACQUIRE, this.keys(names), [ticket, String(ttl)], timeout, read, sentAt);
  }

  /** Calls `settle` once, and never throws. */
  renew(
    names: LockNames,
    owner: string,
    ttl: number,
    mode: RenewalMode,
    timeout: number,
    settle: (ownership: Ownership) => void,
  ): void {
    const script = mode === 'extend' ? this.#scripts.RENEW : this.#scripts.CONFIRM;
    const sentAt = clock.now();
    const read = (reply: unknown): Ownership => ownershipIn(script, reply, sentAt, ttl);
    const fail = (cause: unknown): void => settle(unknownOwnership(cause, read));
    this.redis.send(script, [names.lock], [owner, String(ttl)], timeout, read, settle, fail);
  }

  release<T>(
    names: LockNames,
    owner: string,
    sentAt: number,
    timeout: number,
    use: (reply: ReleaseReply) => T,
  ): Promise<T> {
    const args = [owner, this.deleteCommand, ...this.notification(names)];
    return this.#release(this.#scripts.RELEASE, names, args, timeout, use, sentAt);
  }

  /** Releases the lock to pollers: waiters that listen are not notified. */
  leaveToPollers<T>(names: LockNames, owner: string, timeout: number, use: (reply: ReleaseReply) => T): Promise<T> {
    const args = [owner, this.deleteCommand, ...this.notification(names)];
    return this.#release(this.#scripts.LEAVE, names, args, timeout, use);
  }

  /** Gives the lock back, and keeps its key until the `minHold` ends. */
  keep<T>(names: LockNames, owner: string, keep: Keep, timeout: number, use: (reply: ReleaseReply) => T): Promise<T> {
    const args = [owner, ...keepArguments(keep), ...this.notification(names)];
    return this.#release(this.#scripts.KEEP, names, args, timeout, use);
  }

  /** Wakes waiters if the lock is free. */
  notifyIfFree(names: LockNames, timeout: number): Promise<void> {
    const { NOTIFY: notify } = this.#scripts;
    const read = (reply: unknown): void => void numberIn(notify, reply, reply);
    return this.redis.run(notify, [names.lock], [...this.notification(names)], timeout, read);
  }

  #release<T>(
    script: Script,
    names: LockNames,
    args: string[],
    timeout: number,
    use: (reply: ReleaseReply) => T,
    sentAt?: number,
  ): Promise<T> {
    const read = (reply: unknown): T => use(this.#released(script, reply));
    return this.redis.run(script, [names.lock], args, timeout, read, sentAt);
  }

  /**
   * Confirms a hold for the next caller of this process: its key lives for at least `ttl` ms, and it has a new token.
   * With `ownListeners` it is released instead when more connections than those listen for it.
   */
  confirmOrRelease<T>(
    names: LockNames,
    owner: string,
    ttl: number,
    sentAt: number,
    ownListeners: number | undefined,
    timeout: number,
    use: (reply: ConfirmReply) => T,
  ): Promise<T> {
    const args = [owner, String(ttl)];
    if (ownListeners !== undefined) args.push(String(ownListeners), this.deleteCommand, ...this.notification(names));
    const read = (reply: unknown): T => use(this.#confirmed(reply));
    return this.redis.run(this.#scripts.CONFIRM_OR_RELEASE, this.keys(names), args, timeout, read, sentAt);
  }

  #acquired(reply: unknown): Acquired {
    const { ACQUIRE: acquire } = this.#scripts;
    if (!Array.isArray(reply)) return { granted: true, fencingToken: this.#token(acquire, reply) };
    const [pttl, owner] = arrayIn(acquire, reply, 1, 2);
    return { granted: false, remaining: remainingIn(acquire, reply, pttl), owner: ownerIn(owner) };
  }

  #confirmed(reply: unknown): ConfirmReply {
    const { CONFIRM_OR_RELEASE: confirm } = this.#scripts;
    if (!Array.isArray(reply)) return { isHeld: true, fencingToken: this.#token(confirm, reply) };
    return { isHeld: false, ...this.#released(confirm, reply) };
  }

  /** The lock, and its fencing counter where there is one. */
  keys(names: LockNames): string[] {
    return this.isFencing ? [names.lock, this.fence(names)] : [names.lock];
  }

  #token(script: Script, reply: unknown): number | undefined {
    const token = numberIn(script, reply, reply);
    if (token < 1) throw new UnexpectedReplyError(script.name, reply);
    return this.isFencing ? token : undefined;
  }

  #released(script: Script, reply: unknown): ReleaseReply {
    const [found, listeners = 0] = Array.isArray(reply) ? arrayIn(script, reply, 1, 2) : [reply];
    return { found: this.foundIn(script, reply, found), listeners: numberIn(script, reply, listeners) };
  }
}
