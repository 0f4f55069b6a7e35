import { clock } from '../internal/clock';
import { UnexpectedReplyError } from '../redis/failure';
import type { LockNames } from '../redis/names';
import type { Redis } from '../redis/redis';
import { arrayIn, numberIn } from '../redis/reply';
import type { Script } from '../redis/script';
import {
  type Acquired,
  foundIn,
  type HandOverReply,
  type LockFormat,
  lifeIn,
  ownerIn,
  ownershipIn,
  type ReleaseReply,
} from './format';
import { type Keep, keepArguments } from './kept';
import type { Ownership, Released, RenewalMode } from './protocol';

/** The scripts of a format. All formats have the same KEYS, ARGV and replies, except for what `notification` adds. */
export interface FormatScripts {
  readonly acquire: Script;
  readonly release: Script;
  readonly leave: Script;
  readonly keep: Script;
  /** Publishes that a lock is free, if it is. KEYS: lock. ARGV: what `notification` returns. */
  readonly notify: Script;
  readonly handOver: Script;
  readonly renew: Script;
  /** Asks about a lock without extending it. */
  readonly confirm: Script;
}

/** Runs the scripts of a format and reads their replies. */
export abstract class ScriptedFormat implements LockFormat {
  protected readonly redis: Redis;
  protected readonly isFencing: boolean;
  readonly #scripts: FormatScripts;
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, isFencing: boolean, scripts: FormatScripts) {
    this.redis = redis;
    this.isFencing = isFencing;
    this.#scripts = scripts;
  }

  abstract readonly isSharded: boolean;
  abstract readonly countsListeners: boolean;
  abstract channels(names: LockNames): readonly string[];
  abstract isRelease(message: string, names: LockNames): boolean;
  abstract isLeftToPollers(message: string): boolean;
  /** The key of the fencing counter. Throws `RangeError` when it could not share the lock's hash slot. */
  protected abstract fence(names: LockNames): string;
  /** How a release is published: the last arguments of the scripts. */
  protected abstract notification(names: LockNames): readonly string[];

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

  acquire<T>(names: LockNames, owner: string, ttl: number, timeout: number, use: (found: Acquired) => T): Promise<T> {
    const read = (reply: unknown): T => use(this.#acquired(reply));
    return this.redis.run(this.#scripts.acquire, this.#keys(names), [owner, String(ttl)], timeout, read);
  }

  renew(
    names: LockNames,
    owner: string,
    ttl: number,
    mode: RenewalMode,
    timeout: number,
    settle: (ownership: Ownership) => void,
  ): void {
    const script = mode === 'extend' ? this.#scripts.renew : this.#scripts.confirm;
    const sentAt = clock.now();
    const read = (reply: unknown): Ownership => ownershipIn(script, reply, sentAt, ttl);
    const fail = (cause: unknown): void => settle({ state: 'unknown', cause });
    this.redis.send(script, [names.lock], [owner, String(ttl)], timeout, read, settle, fail);
  }

  release<T>(names: LockNames, owner: string, timeout: number, use: (reply: ReleaseReply) => T): Promise<T> {
    return this.#release(this.#scripts.release, names, [owner, this.deleteCommand], timeout, use);
  }

  leaveToPollers<T>(names: LockNames, owner: string, timeout: number, use: (reply: ReleaseReply) => T): Promise<T> {
    return this.#release(this.#scripts.leave, names, [owner, this.deleteCommand], timeout, use);
  }

  keep<T>(names: LockNames, owner: string, keep: Keep, timeout: number, use: (reply: ReleaseReply) => T): Promise<T> {
    return this.#release(this.#scripts.keep, names, [owner, ...keepArguments(keep)], timeout, use);
  }

  notifyIfFree(names: LockNames, timeout: number): Promise<void> {
    const { notify } = this.#scripts;
    const read = (reply: unknown): void => void numberIn(notify, reply, reply);
    return this.redis.run(notify, [names.lock], [...this.notification(names)], timeout, read);
  }

  #release<T>(
    script: Script,
    names: LockNames,
    first: readonly string[],
    timeout: number,
    use: (reply: ReleaseReply) => T,
  ): Promise<T> {
    const args = [...first, ...this.notification(names)];
    const read = (reply: unknown): T => use(this.#released(script, reply));
    return this.redis.run(script, [names.lock], args, timeout, read);
  }

  handOver<T>(
    names: LockNames,
    from: string,
    to: string,
    ttl: number,
    ownListeners: number | undefined,
    timeout: number,
    use: (reply: HandOverReply) => T,
  ): Promise<T> {
    const own = ownListeners === undefined ? 'keep' : String(ownListeners);
    const args = [from, to, String(ttl), own, this.deleteCommand, ...this.notification(names)];
    const read = (reply: unknown): T => use(this.#handedOver(reply));
    return this.redis.run(this.#scripts.handOver, this.#keys(names), args, timeout, read);
  }

  #acquired(reply: unknown): Acquired {
    const { acquire } = this.#scripts;
    if (!Array.isArray(reply)) return { granted: true, fencingToken: this.#token(acquire, reply) };
    const [life, owner] = arrayIn(acquire, reply, 1, 2);
    return { granted: false, remaining: lifeIn(acquire, reply, life), owner: ownerIn(owner) };
  }

  #handedOver(reply: unknown): HandOverReply {
    const { handOver } = this.#scripts;
    if (!Array.isArray(reply)) return { handedOver: true, fencingToken: this.#token(handOver, reply) };
    return { handedOver: false, ...this.#released(handOver, reply) };
  }

  #keys(names: LockNames): string[] {
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
