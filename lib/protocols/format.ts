import { reliableUntil } from '../internal/clock';
import { UnexpectedReplyError } from '../redis/failure';
import type { LockNames } from '../redis/names';
import { arrayIn, numberIn } from '../redis/reply';
import type { Script } from '../redis/script';
import type { ReleaseChannels } from './notification';
import type { Ownership, Released, RenewalMode } from './protocol';

/** What an attempt found. */
export type Acquired =
  | { readonly granted: true; readonly fencingToken: number | undefined }
  /** ms that the holder's key still has to live; `Infinity` when it has no expiry. */
  | { readonly granted: false; readonly remaining: number };

/** What a release found, and how many connections were notified of it. */
export interface ReleaseReply {
  readonly found: Released;
  readonly listeners: number;
}

/** What came of handing a lock over: it was handed over, or it was released for other processes, or it was not ours. */
export type HandOverReply =
  | { readonly handedOver: true; readonly fencingToken: number | undefined }
  | ({ readonly handedOver: false } & ReleaseReply);

/**
 * How a lock is written in Redis: as Spring's string, or as Redisson's hash. One object for each registry. Each method
 * runs one script. Timeouts are in ms.
 */
export interface LockFormat extends ReleaseChannels {
  acquire(names: LockNames, owner: string, ttl: number, timeout: number): Promise<Acquired>;
  /** Never rejects. */
  renew(names: LockNames, owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership>;
  release(names: LockNames, owner: string, timeout: number): Promise<ReleaseReply>;
  /**
   * Hands the lock over. With `ownListeners` it is released instead when more connections than those listen for it.
   */
  handOver(
    names: LockNames,
    from: string,
    to: string,
    ttl: number,
    ownListeners: number | undefined,
    timeout: number,
  ): Promise<HandOverReply>;
  /** Throws `RangeError` when there is no way to name in Redis what belongs to the lock. */
  assertNames(names: LockNames): void;
  /** Whether the channels are sharded. */
  readonly isSharded: boolean;
  /** Whether PUBLISH in a script counts all listeners. On a cluster a channel that is not sharded does not. */
  readonly countsListeners: boolean;
}

/** Reads the life of a key as PTTL returns it: -1 is a key without expiry. */
export function lifeIn(script: Script, reply: unknown, value: unknown): number {
  const life = numberIn(script, reply, value);
  return life === -1 ? Number.POSITIVE_INFINITY : Math.max(0, life);
}

/** Reads what a script found that gives back or renews: 1 or more its key, 0 no key, -1 the key of another owner. */
export function foundIn(script: Script, reply: unknown, value: unknown): Released {
  const found = numberIn(script, reply, value);
  if (!Number.isInteger(found) || found < -1 || found > 2) throw new UnexpectedReplyError(script.name, reply);
  return found === 0 ? 'expired' : found < 0 ? 'stolen' : 'released';
}

/**
 * Reads the reply of a script that renews: 1 the key has the full ttl now; { life } it lives longer, or was only asked
 * about; 0 no key; -1 the key of another owner.
 */
export function ownershipIn(script: Script, reply: unknown, sentAt: number, ttl: number): Ownership {
  if (Array.isArray(reply)) {
    const [life] = arrayIn(script, reply, 1);
    return { state: 'held', until: reliableUntil(sentAt, lifeIn(script, reply, life)) };
  }
  const found = foundIn(script, reply, reply);
  return found === 'released' ? { state: 'held', until: reliableUntil(sentAt, ttl) } : { state: found };
}

/** For a `LockScript`: whether the reply says that the owner's key was there. */
export function isFound(reply: unknown): boolean {
  return Array.isArray(reply) ? reply.length === 1 || Number(reply[0]) > 0 : Number(reply) > 0;
}
