import type { Released } from '../../core/protocol';
import { reliableUntil } from '../../internal/clock';

/** What a script says of the lock. */
export interface QueueReply {
  /** The owner value of this process that holds the lock, if one does, and its token. */
  readonly owner: string | undefined;
  readonly token: string;
  /** The holder may be of another lock type, or of a library that publishes no releases. */
  readonly isOutsiders: boolean;
  /** Nobody else waited, in any process. */
  readonly isAlone?: boolean;
  /** Who held the lock when the script ran, if the reply says it. */
  readonly holder?: string | undefined;
  /** ms that the lock's key still has to live; `Infinity` without an expiry. */
  readonly life: number;
  /** When the script was sent, on the monotonic clock, and the drift between the clocks then. */
  readonly sentAt: number;
  readonly drift: number;
}

export interface AcquireReply extends QueueReply {
  readonly score: string;
}

export interface PollReply extends QueueReply {
  /** Redis knows of no connection on which this process listens. */
  readonly isUnreachable: boolean;
  /** Positions, from 0 up, of the tickets that are not in the queue. */
  readonly missing: readonly number[];
}

export interface ReleaseReply {
  readonly found: Released;
  /** `undefined`: released, and there were no waiters. */
  readonly queue: QueueReply | undefined;
  /** The score that the next ticket was given, even if it then got the lock; '' otherwise. */
  readonly score: string;
  readonly isNotificationRefused: boolean;
  /** For a release that may leave the lock to pollers: 0 when it did, or ms until the next one may. */
  readonly pauseIn: number | undefined;
}

/** The local time until which a grant that a reply reported may be relied on. */
export function replyUntil({ sentAt, life }: QueueReply): number {
  return reliableUntil(sentAt, Math.min(life, Number.MAX_SAFE_INTEGER));
}
