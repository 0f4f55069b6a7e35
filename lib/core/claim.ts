import type { Question } from './availability';
import { Hold } from './hold';
import type { LockOfCall } from './lock-of-call';
import type { Grant, LockProtocol, Refusal } from './protocol';
import type { LockRequest } from './request';

/**
 * What this process has asked Redis for. If its caller leaves, it is given back. If its caller gets a lease on another hold
 * meanwhile, the next caller goes on with it (`Call.receive`): only of a shared lock, see `suspended` of `SharedPassing` in
 * `kinds/shared/locks`.
 */
export interface Claim {
  /** What the attempts ask for, and may leave in Redis. */
  readonly hold: Hold;
  /** The last attempt. */
  readonly question: Question<Grant | Refusal>;
  /** The last answer that another owner has the lock. */
  refusal?: Refusal | undefined;
}

/** The caller that asks. */
interface Claimant {
  readonly request: LockRequest;
  readonly wait: { readonly startedAt: number };
}

/** The claim of the next attempt: all of a call's are for one hold. `waits`: it may get a position in a queue. */
export function nextClaim(
  lock: LockOfCall,
  protocol: LockProtocol,
  { request, wait }: Claimant,
  waits: boolean,
  before: Claim | undefined,
): Claim {
  const { minHold, permits } = request;
  let hold = before?.hold;
  // An owner value says when the attempt was made.
  if (hold === undefined || hold.attempts.wereNeverInDoubt) {
    const value = lock.services.nextOwner();
    // A semaphore counts what stands in it.
    const owner = permits === 1 ? value : `${value}*${permits}`;
    const asked = { ttl: protocol.ttlFor?.(request) ?? request.ttl, minHold, permits, waits };
    if (hold === undefined) hold = new Hold(owner, asked, lock.services, protocol);
    else hold.renameTo(owner);
  }
  hold.stamp(wait.startedAt);
  return { hold, question: protocol.availability.ask(hold.sentAt), refusal: before?.refusal };
}

/** What another call would wait for that asks for the same; `undefined`: that is for something else, or not to come. */
export function replyFor(
  request: LockRequest,
  { hold, question, refusal }: Claim,
): Promise<Grant | Refusal> | undefined {
  const { leastLife, permits, protocol, ttl, waits } = hold;
  const asked = protocol.ttlFor?.(request) ?? request.ttl;
  const isSame = Math.ceil(asked) === ttl && request.minHold === leastLife && request.permits === permits;
  if (!waits || !isSame) return undefined;
  return question.reply ?? (refusal && Promise.resolve(refusal));
}
