import { Backoff } from '../internal/backoff';
import { clock, pause } from '../internal/clock';
import type { Keep } from '../protocols/min-hold/kept';
import type { LockProtocol, Released } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import { isFinal, isServerAnswer, messageOf } from '../redis/failure';

/** A lease, or an acquisition whose caller left. */
interface Ended {
  /** How long the lock is to be kept; `undefined`: not at all. */
  readonly keep: Keep | undefined;
}

/** Releases the lock of an acquisition, or keeps it until its `minHold` ends. `now`: as in `LockProtocol.release`. */
export function release(
  protocol: LockProtocol,
  owner: string,
  { keep }: Ended,
  timeout: number,
  now?: number,
): Promise<Released> {
  return keep === undefined ? protocol.release(owner, timeout, now) : protocol.keep(owner, keep, timeout);
}

/** How a release ended. */
type ReleaseResult =
  | {
      readonly outcome: Released;
      /** An earlier try may have done it: the outcome is that of a repetition. */
      readonly isRepeated: boolean;
    }
  | { readonly outcome: 'failed'; readonly cause: unknown; readonly reason: string };

/**
 * The outcome of a hand-over to a local caller. `not tried`: the server refused it, so there is still a key to release.
 */
export type HandOverResult = Released | 'unknown' | 'not tried';

/**
 * Repeats a release after failures that pass, until `endsAt`. `first` is the first try: a release, or a hand-over to a
 * local caller. `startedAt`: when it was sent. `disruptions`: those of the connection before that. Never rejects.
 */
export async function releaseWithin(
  startedAt: number,
  endsAt: number,
  protocol: LockProtocol,
  owner: string,
  ended: Ended,
  connection: Connection,
  disruptions: number,
  first: Promise<HandOverResult>,
): Promise<ReleaseResult> {
  let isRepeated = false;
  let attempt: Promise<HandOverResult> | undefined = first;
  for (const backoff = new Backoff(); ; ) {
    try {
      attempt ??= release(protocol, owner, ended, Math.max(1, endsAt - clock.now()));
      const outcome = await attempt;
      attempt = undefined;
      if (outcome === 'not tried') continue;
      if (outcome === 'unknown') isRepeated = true;
      else return { outcome, isRepeated: isRepeated || disruptions !== connection.disruptions };
    } catch (cause) {
      attempt = undefined;
      if (!isServerAnswer(cause)) isRepeated = true;
      const interval = backoff.next();
      if (isFinal(cause) || clock.now() + interval >= endsAt) {
        return { outcome: 'failed', cause, reason: describe(cause, clock.now() - startedAt) };
      }
      await pause(interval);
    }
  }
}

function describe(cause: unknown, elapsed: number): string {
  if (isFinal(cause)) return `Redis refused it: ${messageOf(cause)}`;
  return `tried for ${Math.round(elapsed)} ms: ${messageOf(cause)}`;
}
