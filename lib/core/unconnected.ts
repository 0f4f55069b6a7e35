import { clock } from '../internal/clock';
import { TimerForMany } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { CONNECTS_WITHIN } from '../redis/silence-times';
import { noAnswer } from './availability';
import type { Wait } from './wait';

/** ms between two looks at the client. */
const INTERVAL = 25;

/**
 * Single attempts while the client says that it has no connection. They fail early: `commandTimeout` is long for a
 * caller that does not wait, and what the client keeps until it is connected would be executed for nobody.
 */
export class Unconnected {
  readonly #connection: Connection;
  readonly #timer = new TimerForMany(false);

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * From now on the wait is interrupted when its time without a connection is over. Returns what ends that. `least`: ms that
   * the call around it has for its first attempts.
   */
  watch(wait: Wait, lockName: string, least: number): () => void {
    const look = (): void => {
      if (!this.#connection.isDisconnected(lockName)) this.#timer.schedule(look, clock.now() + INTERVAL);
      else wait.interrupt(noAnswer(wait.key, this.#connection, 'the client has no connection'));
    };
    // The call around it has left by then: nobody is to wait behind what is asked for nobody.
    const left = Math.max(wait.endsAround - wait.startedAt, least) + INTERVAL;
    this.#timer.schedule(look, wait.startedAt + Math.min(CONNECTS_WITHIN, left));
    return () => this.#timer.cancel(look);
  }

  /** Leaves no timer behind. Callers that waited were interrupted before. */
  close(): void {
    this.#timer.close();
  }

  /** While there is no connection, where the client makes one unasked: a pause until the next look. */
  pause(wait: Wait, lockName: string): Promise<void> | undefined {
    const isOfUse = this.#connection.connectsUnasked && this.#connection.isDisconnected(lockName);
    return isOfUse ? wait.suspend<void>(INTERVAL, () => undefined) : undefined;
  }
}
