import { reliableUntil } from '../clock';

/** Clocks of two machines may run so much faster or slower than each other. */
const DRIFT = 0.001;

/** ms by which two readings of one clock may contradict each other. */
const TOLERANCE = 2;

/** ms for which nothing is told from time stamps after a contradiction: a message from before it has arrived by then. */
const DISTRUST = 60_000;

interface Anchor {
  /** An exchange with the server, in local monotonic ms, and what its clock showed between the two, in ms. */
  readonly sentAt: number;
  readonly receivedAt: number;
  readonly serverTime: number;
  /** The connections that it holds for. */
  readonly connection: string;
}

/**
 * What is known of the server's clock, to tell from a time stamp of the server how old it is at the most.
 *
 * From one exchange it is known that the server's clock showed S1 somewhere between the local times a (sent) and b
 * (received). A stamp S was therefore not made before local a + (S - S1), less the drift over that span. It is assumed
 * that both clocks run at the same rate to within 0.1 %, and that the server's clock was not set between S1 and S; that
 * it was set shows at the next exchange, which has to fit the one before. Another server has another clock: an exchange
 * counts only as long as the connections are the same.
 */
export class ServerClock {
  #anchor: Anchor | undefined;
  #distrustedUntil = Number.NEGATIVE_INFINITY;

  /** `connection` undefined: the client does not tell when it talks to another server. */
  note(sentAt: number, receivedAt: number, serverTime: number, connection: string | undefined): void {
    const before = this.#anchor?.connection === connection ? this.#anchor : undefined;
    if (before !== undefined && !fits(before, sentAt, receivedAt, serverTime)) {
      this.#distrustedUntil = receivedAt + DISTRUST;
    }
    const isTrusted = connection !== undefined && receivedAt >= this.#distrustedUntil;
    this.#anchor = isTrusted ? { sentAt, receivedAt, serverTime, connection } : undefined;
  }

  /**
   * Until when, in local ms, a grant of `window` ms may be relied on that was stamped `stamp` and received at
   * `receivedAt`, for a ticket that was first sent at `sentAt`: whatever can be proved of its age, it was made after
   * the ticket was sent, and before it was received.
   */
  grantUntil(
    stamp: number,
    window: number,
    sentAt: number,
    receivedAt: number,
    connection: string | undefined,
  ): number {
    const madeAt = Math.max(sentAt, this.#earliest(stamp, connection));
    return reliableUntil(Math.min(madeAt, receivedAt), window);
  }

  #earliest(stamp: number, connection: string | undefined): number {
    const anchor = this.#anchor;
    if (anchor === undefined || anchor.connection !== connection) return Number.NEGATIVE_INFINITY;
    const span = stamp - anchor.serverTime;
    return anchor.sentAt + span - Math.abs(span) * DRIFT;
  }
}

function fits(before: Anchor, sentAt: number, receivedAt: number, serverTime: number): boolean {
  const elapsed = serverTime - before.serverTime;
  const least = (sentAt - before.receivedAt) * (1 - DRIFT) - TOLERANCE;
  const most = (receivedAt - before.sentAt) * (1 + DRIFT) + TOLERANCE;
  return elapsed >= least && elapsed <= most;
}
