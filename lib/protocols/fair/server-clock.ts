import { drift, reliableUntil, wasSuspended } from '../../internal/clock';

/** Clocks of two machines may differ in rate by this much. */
const RATE = 0.001;

/** ms by which two readings of one clock may contradict each other. */
const TOLERANCE = 2;

/** ms for which stamps prove nothing after a contradiction: all messages sent before it have arrived by then. */
const DISTRUST = 60_000;

/** An exchange with the server: when it was sent and received, in local monotonic ms, and what its clock showed, in ms. */
interface Anchor {
  readonly sentAt: number;
  readonly receivedAt: number;
  readonly serverTime: number;
  /** The connections that it holds for, and the drift between the local clocks then. */
  readonly connection: string;
  readonly drift: number;
}

/**
 * What is known of the server's clock. It computes, from a time stamp of the server, how old the stamp is at most.
 *
 * One exchange shows that the server's clock was at S1 at some time between the local times a (sent) and b (received).
 * So a stamp S was not made before local a + (S - S1), minus 0.1 % of that span, by which the clocks may differ. This
 * assumes that the server's clock was not set between S1 and S: that shows at the next exchange, which has to fit the one
 * before. Another server has another clock, so an exchange counts only while the connections are the same. While this
 * machine is suspended its monotonic clock stands still: then it counts no more.
 */
export class ServerClock {
  #anchor: Anchor | undefined;
  #distrustedUntil = Number.NEGATIVE_INFINITY;

  /** Notes an exchange; `connection` is undefined for a client that does not say when it talks to another server. */
  note(sentAt: number, receivedAt: number, serverTime: number, connection: string | undefined): void {
    const before = this.#anchorFor(connection);
    if (before !== undefined) {
      const elapsed = serverTime - before.serverTime;
      const least = (sentAt - before.receivedAt) * (1 - RATE) - TOLERANCE;
      const most = (receivedAt - before.sentAt) * (1 + RATE) + TOLERANCE;
      if (elapsed < least || elapsed > most) this.#distrustedUntil = receivedAt + DISTRUST;
    }
    const isTrusted = connection !== undefined && receivedAt >= this.#distrustedUntil;
    this.#anchor = isTrusted ? { sentAt, receivedAt, serverTime, connection, drift: drift() } : undefined;
  }

  /**
   * The local time, in ms, until which a grant may be relied on. It lasts for `window` ms, was stamped `stamp`, and was
   * made after `sentAt`, when its ticket was first sent, and before `receivedAt`, whatever else can be proved.
   */
  grantUntil(
    stamp: number,
    window: number,
    sentAt: number,
    receivedAt: number,
    connection: string | undefined,
  ): number {
    const anchor = this.#anchorFor(connection);
    const span = stamp - (anchor?.serverTime ?? 0);
    const earliest = anchor === undefined ? sentAt : anchor.sentAt + span - Math.abs(span) * RATE;
    const madeAt = Math.max(sentAt, earliest);
    return reliableUntil(Math.min(madeAt, receivedAt), window);
  }

  #anchorFor(connection: string | undefined): Anchor | undefined {
    const anchor = this.#anchor;
    if (anchor === undefined || anchor.connection !== connection) return undefined;
    return wasSuspended(anchor.drift, drift()) ? undefined : anchor;
  }
}
