import { clock, MAX_DELAY } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';

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
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  add(deadline: Deadline, now: number): void {
    this.#pending.append(deadline);
    const { at } = deadline;
    // A timer that is overdue may never fire: it was set on a clock that an application's tests have replaced since.
    if (at < this.#wakesAt || this.#wakesAt < now) this.#wakeBy(Math.min(at, Math.max(this.#wakesAt, now + 1)), now);
  }

  /** It is over. Only once, and not for one that was missed. */
  remove(deadline: Deadline): void {
    this.#pending.remove(deadline);
  }

  #wakeBy(time: number, now: number): void {
    clock.clearTimeout(this.#timer);
    this.#wakesAt = time;
    this.#timer = clock.setTimeout(() => this.#tick(), Math.min(Math.max(1, Math.ceil(time - now)), MAX_DELAY));
    this.#timer.unref?.();
  }

  #tick(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
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
    if (earliest < this.#wakesAt) this.#wakeBy(earliest, now);
  }
}
