import type { Grant, HoldOfProtocol, NotHeld, Ownership, Refusal, Released, Tokens, Travel } from '../../core/protocol';
import { clock, reliableUntil } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import type { Script } from '../../redis/script';
import { inboxOf } from './inbox-channels';
import type { LockScripts } from './lock-scripts';
import { arrayIn, foundIn, numberIn, ownerIn, remainingIn, renew } from './replies';
import type { Meaning } from './waiting';

const NO_TOKENS: Tokens = { fencingToken: undefined };

/**
 * How a lock is written in Redis, as Spring's string or as Redisson's hash: its scripts, and the names of its keys and
 * channels. One object for each registry.
 */
export abstract class ScriptedFormat {
  protected readonly redis: Redis;
  readonly isFencing: boolean;
  readonly scripts: LockScripts;
  /** Whether the channels are sharded. */
  readonly isSharded: boolean;
  /** Whether PUBLISH in a script counts all listeners. On a cluster it does not, for a channel that is not sharded. */
  readonly countsListeners: boolean;
  /** The command that deletes a lock, for the scripts that release it. */
  deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, isFencing: boolean, scripts: LockScripts, isSharded: boolean) {
    this.redis = redis;
    this.isFencing = isFencing;
    this.scripts = scripts;
    this.isSharded = isSharded;
    this.countsListeners = isSharded || !redis.isCluster;
  }

  abstract channels(names: LockNames): readonly string[];
  /** What is published on them when the lock is released. */
  protected abstract releaseOf(names: LockNames): string;
  /** How a release is published: the last arguments of the scripts that release. */
  abstract notification(names: LockNames): readonly string[];
  /** How many tokens to ask for while that many callers wait. */
  abstract tokensFor(callers: number): number;
  /** The key of the fencing counter. Throws `RangeError` when it could not share the lock's hash slot. */
  protected abstract fence(names: LockNames): string;

  meaningOf(message: string, names: LockNames): Meaning {
    if (message === this.releaseOf(names)) return 'release';
    return message === this.scripts.leftToPollers ? 'left to pollers' : undefined;
  }

  /** Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  assertNames(names: LockNames): void {
    if (this.isFencing) this.fence(names);
  }

  /** The lock, and its fencing counter where there is one. */
  keys(names: LockNames): string[] {
    return this.isFencing ? [names.lock, this.fence(names)] : [names.lock];
  }

  /** Reads what a release found. Where the server refused UNLINK (2), later releases delete by DEL at once. */
  foundIn(script: Script, reply: unknown, value: unknown): Released {
    if (Number(value) === 2) this.deleteCommand = 'DEL';
    return foundIn(script, reply, value);
  }

  /**
   * Reads the reply of a script that gives a lock back: what it found, how many connections it notified, and the head start of
   * a waiter in ms (`WantedMark`), 0 where none needs one.
   */
  givenBackIn(script: Script, reply: unknown): { found: Released; listeners: number; headStart: number } {
    if (!Array.isArray(reply)) return { found: this.foundIn(script, reply, reply), listeners: 0, headStart: 0 };
    const [value, listeners = 0, headStart = 0] = arrayIn(script, reply, 1, 3);
    const numbers = [listeners, headStart].map((one) => numberIn(script, reply, one)) as [number, number];
    return { found: this.foundIn(script, reply, value), listeners: numbers[0], headStart: numbers[1] };
  }

  /** Calls `settle` once, and never throws. */
  renew(names: LockNames, owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void {
    renew(this.redis, this.scripts.RENEW, names.lock, [owner, String(ttl)], ttl, timeout, settle);
  }

  /** See `LockProtocol`. */
  travelOf(names: LockNames): Travel {
    const { ADOPT, DETACH, REPLACE } = this.scripts;
    /** Gives the lock to the owner of the hold. */
    const give = <T>(
      script: Script,
      hold: HoldOfProtocol,
      args: string[],
      timeout: number,
      not: (reply: unknown) => T,
    ) =>
      this.redis.run(script, this.keys(names), args, timeout, (reply) =>
        Number(reply) > 0 ? (this.answerIn(script, reply, 1, hold) as Grant) : not(reply),
      );
    return {
      detach: (owner, to, ttl, timeout) =>
        this.redis.run(DETACH, [names.lock], [owner, to, String(ttl)], timeout, (reply) =>
          foundIn(DETACH, reply, reply),
        ),
      adopt: (from, hold, timeout) =>
        give(
          ADOPT,
          hold,
          [from, hold.owner, String(hold.ttl)],
          timeout,
          (reply) => foundIn(ADOPT, reply, reply) as NotHeld,
        ),
      replace: (from, hold, message, least, timeout) => {
        const told = [inboxOf(names.registryKey, from) ?? '', message, String(least)];
        return give(REPLACE, hold, [from, hold.owner, String(hold.ttl), ...told], timeout, (reply) =>
          reply === -2 ? 'unheard' : (foundIn(REPLACE, reply, reply) as NotHeld),
        );
      },
    };
  }

  /** Reads the reply of a script that acquires. A refusal has at least `least` values. */
  answerIn(script: Script, reply: unknown, least: number, hold: HoldOfProtocol, hintsBefore?: number): Grant | Refusal {
    const { owner: ours, ttl, sentAt, drift } = hold;
    if (!Array.isArray(reply)) {
      const { fencingToken } = this.tokensIn(script, reply);
      return { granted: true, owner: ours, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    }
    const [pttl, owner] = arrayIn(script, reply, least, 3);
    const remaining = remainingIn(script, reply, pttl);
    return { granted: false, remaining, owner: ownerIn(owner), roundTrip: clock.now() - sentAt, hintsBefore };
  }

  /** Reads 1, or tokens as common/mint-block returns them. */
  tokensIn(script: Script, reply: unknown): Tokens {
    if (reply === 1 && !this.isFencing) return NO_TOKENS;
    const [first, count = 1] = typeof reply === 'string' ? reply.split(' ') : [reply];
    const fencingToken = numberIn(script, reply, first);
    const moreTokens = numberIn(script, reply, count) - 1;
    if (fencingToken < 1 || moreTokens < 0) throw new UnexpectedReplyError(script.name, reply);
    return this.isFencing ? { fencingToken, moreTokens } : NO_TOKENS;
  }
}
