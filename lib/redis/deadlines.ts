import { clock } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';
import { WakeTimer } from '../internal/timers';

/** Something that has to be over by a certain time. */
export interface Deadline extends Linked<Deadline> {
  /** On the monotonic clock. */
  readonly at: number;
  /** Called once, when it is not over by then. */
  missed(): void;
}

/**
 * The deadlines of all commands in flight, on one timer: a timer for each would cost as much as the rest of a command.
 * Removing a deadline leaves the timer as it is; it fires once for nothing then. The timer does not keep the process
 * alive: the connection that brings the answer does.
 */
export class Deadlines {
  readonly #pending = new LinkedList<Deadline>();
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  add(deadline: Deadline, now: number): void {
    this.#pending.append(deadline);
    this.#timer.by(deadline.at, now);
  }

  /** It is over. Only once, and not for one that was missed. */
  remove(deadline: Deadline): void {
    this.#pending.remove(deadline);
  }

  #tick(): void {
    const now = clock.now();
    let earliest = Number.POSITIVE_INFINITY;
    for (const deadline of this.#pending) {
      if (deadline.at > now) {
        earliest = Math.min(earliest, deadline.at);
      } else {
        this.#pending.remove(deadline);
        deadline.missed();
      }
    }
    this.#timer.by(earliest, now);
  }
}
