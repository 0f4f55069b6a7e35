/** What is known of the way to Redis: whether commands may be lost or repeated on it, and why. */
export interface Connection {
  /**
   * The connection that commands go over now; `undefined` where there are several, or it is not known. If it is the
   * same before the first and after the last command, they arrived in order.
   */
  readonly connectionEpoch: number | undefined;
  /** Grows with every connection that was lost, as far as that is known. */
  readonly disruptions: number;
  /** The registry is closed: nothing is to be sent in the background any more. */
  readonly isClosed: boolean;
  /** The last error of the connection since it was made. */
  readonly lastError: unknown;
  /** Whether the answer to what was sent then may come from a server that does not know that it was replaced. */
  mayBeOutdated(sentAt: number): boolean;
  /** On a cluster, the slot of a key, for error messages. */
  slotOf(key: string): number | undefined;
}
