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
  ownershipIn,
  type ReleaseReply,
} from './format';
import type { Ownership, RenewalMode } from './protocol';

/** The scripts of a format. All formats have the same KEYS, ARGV and replies, except for what `notification` adds. */
export interface FormatScripts {
  readonly acquire: Script;
  readonly release: Script;
  readonly handOver: Script;
  readonly renew: Script;
  /** Asks about a lock without extending it. */
  readonly confirm: Script;
}

/** Runs the scripts of a format and reads their replies. */
export abstract class ScriptedFormat implements LockFormat {
  readonly #redis: Redis;
  readonly #fencing: boolean;
  readonly #scripts: FormatScripts;
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, fencing: boolean, scripts: FormatScripts) {
    this.#redis = redis;
    this.#fencing = fencing;
    this.#scripts = scripts;
  }

  abstract readonly isSharded: boolean;
  abstract readonly countsListeners: boolean;
  abstract channels(names: LockNames): readonly string[];
  abstract isRelease(message: string, names: LockNames): boolean;
  /** The key of the fencing counter. Throws `RangeError` when it could not share the lock's hash slot. */
  protected abstract fence(names: LockNames): string;
  /** How a release is published: the last arguments of the scripts. */
  protected abstract notification(names: LockNames): readonly string[];

  assertNames(names: LockNames): void {
    if (this.#fencing) this.fence(names);
  }

  async acquire(names: LockNames, owner: string, ttl: number, timeout: number): Promise<Acquired> {
    const { acquire } = this.#scripts;
    const reply = await this.#redis.run(acquire, this.#keys(names), [owner, String(ttl)], timeout);
    if (!Array.isArray(reply)) return { granted: true, fencingToken: this.#token(acquire, reply) };
    const [life] = arrayIn(acquire, reply, 1);
    return { granted: false, remaining: lifeIn(acquire, reply, life) };
  }

  async renew(names: LockNames, owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    const script = mode === 'extend' ? this.#scripts.renew : this.#scripts.confirm;
    const sentAt = clock.now();
    try {
      const reply = await this.#redis.run(script, [names.lock], [owner, String(ttl)], timeout);
      return ownershipIn(script, reply, sentAt, ttl);
    } catch (cause) {
      return { state: 'unknown', cause };
    }
  }

  async release(names: LockNames, owner: string, timeout: number): Promise<ReleaseReply> {
    const args = [owner, this.#deleteCommand, ...this.notification(names)];
    const reply = await this.#redis.run(this.#scripts.release, [names.lock], args, timeout);
    return this.#released(this.#scripts.release, reply);
  }

  async handOver(
    names: LockNames,
    from: string,
    to: string,
    ttl: number,
    ownListeners: number | undefined,
    timeout: number,
  ): Promise<HandOverReply> {
    const { handOver } = this.#scripts;
    const own = ownListeners === undefined ? 'keep' : String(ownListeners);
    const args = [from, to, String(ttl), own, this.#deleteCommand, ...this.notification(names)];
    const reply = await this.#redis.run(handOver, this.#keys(names), args, timeout);
    if (!Array.isArray(reply)) return { handedOver: true, fencingToken: this.#token(handOver, reply) };
    return { handedOver: false, ...this.#released(handOver, reply) };
  }

  #keys(names: LockNames): string[] {
    return this.#fencing ? [names.lock, this.fence(names)] : [names.lock];
  }

  #token(script: Script, reply: unknown): number | undefined {
    const token = numberIn(script, reply, reply);
    if (token < 1) throw new UnexpectedReplyError(script.name, reply);
    return this.#fencing ? token : undefined;
  }

  #released(script: Script, reply: unknown): ReleaseReply {
    const [found, listeners = 0] = Array.isArray(reply) ? arrayIn(script, reply, 1, 2) : [reply];
    if (Number(found) === 2) this.#deleteCommand = 'DEL';
    return { found: foundIn(script, reply, found), listeners: numberIn(script, reply, listeners) };
  }
}
