import type { NotReplicatedError } from '../../api/errors';
import type { Exchange, Ownership, Released } from '../../core/protocol';
import { clock, reliableUntil } from '../../internal/clock';
import { CommandTimeoutError, UnexpectedReplyError } from '../../redis/failure';
import type { Redis } from '../../redis/redis';
import { replyOfNotReplicated } from '../../redis/replicas';
import type { Script } from '../../redis/script';

/** A number in a reply. Tokens and times come as text, since they are too large for the numbers of Lua. */
export function numberIn(script: Script, reply: unknown, value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (!Number.isFinite(number)) throw new UnexpectedReplyError(script.name, reply);
  return number as number;
}

/** An array in a reply, with at least this many elements. */
export function arrayIn(script: Script, reply: unknown, least: number, most = least): readonly unknown[] {
  if (!Array.isArray(reply) || reply.length < least || reply.length > most) {
    throw new UnexpectedReplyError(script.name, reply);
  }
  return reply;
}

export function textIn(script: Script, reply: unknown, value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new UnexpectedReplyError(script.name, reply);
  return String(value);
}

/** Reads the owner in a refusal, which may be missing. An empty text is the value of another program, and in the way. */
export function ownerIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Reads how many ms a key has left, as PTTL returns it: -1 is a key without expiry. */
export function remainingIn(script: Script, reply: unknown, value: unknown): number {
  const pttl = numberIn(script, reply, value);
  return pttl === -1 ? Number.POSITIVE_INFINITY : Math.max(0, pttl);
}

/** Reads the result of a release or renewal: 1 or 2 its key, 0 no key, -1 the key of another owner. */
export function foundIn(script: Script, reply: unknown, value: unknown): Released {
  const found = numberIn(script, reply, value);
  if (!Number.isInteger(found) || found < -1 || found > 2) throw new UnexpectedReplyError(script.name, reply);
  return found === 0 ? 'expired' : found < 0 ? 'stolen' : 'released';
}

/**
 * Reads the reply of a script that renews: 1 the key has the full ttl now; { remaining ms } it lasts longer; 0 no key;
 * -1 the key of another owner.
 */
export function ownershipIn(script: Script, reply: unknown, sentAt: number, ttl: number): Ownership {
  if (Array.isArray(reply)) {
    const [pttl] = arrayIn(script, reply, 1);
    return { state: 'held', until: reliableUntil(sentAt, remainingIn(script, reply, pttl)) };
  }
  const found = foundIn(script, reply, reply);
  return found === 'released' ? { state: 'held', until: reliableUntil(sentAt, ttl) } : { state: found };
}

/** What a renewal that failed says. One that was not answered in time is read by `read` when its answer comes. */
export function unknownOwnership(cause: unknown, read: (reply: unknown) => Ownership): Ownership {
  if (!(cause instanceof CommandTimeoutError)) return { state: 'unknown', cause };
  const late = cause.late.then(read).catch((error: unknown): Ownership => ({ state: 'unknown', cause: error }));
  return { state: 'unknown', cause, late };
}

/** Runs a script that renews. Calls `settle` once, and never throws. */
export function renew(
  redis: Redis,
  script: Script,
  lock: string,
  args: string[],
  ttl: number,
  timeout: number,
  settle: (ownership: Ownership) => void,
): void {
  const now = clock.now();
  const read = (reply: unknown): Ownership => ownershipIn(script, reply, now, ttl);
  const failed = (cause: unknown): void => settle(unknownOwnership(cause, read));
  redis.send({ script, keys: [lock], args, timeout, now, read }, settle, failed);
}

/** `exchange`; where too few replicas have what it granted, its reply still says what became of the hold. */
export function exchanged(exchange: Promise<Exchange>, found: (reply: unknown) => Released): Promise<Exchange> {
  return exchange.catch((error: unknown) => {
    const reply = replyOfNotReplicated(error);
    if (reply === undefined) throw error;
    return { found: found(reply), answer: error as NotReplicatedError };
  });
}

/** For a `LockScript`: whether the reply says that the lock is the owner's now: 1 or its token. Else it is a table. */
export function isGrant(reply: unknown): boolean {
  return !Array.isArray(reply);
}

/** For a script that renews or adopts: whether the reply says that the owner's key was there. */
export function isFound(reply: unknown): boolean {
  return Array.isArray(reply) || Number(reply) > 0;
}
