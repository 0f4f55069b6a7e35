import { clock } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';
import { Step } from './step';
import type { Wait } from './wait';

/** First attempts in flight: ten full commands. With a round trip of 1 ms, that is a million a second. */
const LARGEST = 1_000;

/**
 * ms; attempts that are sent within this time are counted together. Two generations count. So an attempt that was not
 * answered for longer holds nobody back: one server of several may be silent, or all. Each caller finds out for itself.
 */
const GENERATION = 100;

const SOON = Promise.resolve();

/** The attempts that were sent within a time. */
export interface Generation {
  inFlight: number;
}

/** The step in which a caller is held back. */
class HeldBack extends Step<void> implements Linked<HeldBack> {
  previous: HeldBack | undefined;
  next: HeldBack | undefined;
  readonly #list: LinkedList<HeldBack>;

  constructor(
    list: LinkedList<HeldBack>,
    ms: number,
    wait: Wait,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    super(wait, ms, resolve, reject);
    this.#list = list;
    list.append(this);
  }

  /** Those that were held back before it go first. */
  override resume(): void {
    while (!this.isOver) {
      const { first } = this.#list;
      if (first === this || first === undefined) super.resume();
      else first.resume();
    }
  }

  protected undo(): void {
    this.#list.remove(this);
  }
}

/**
 * Holds callers back while many first attempts are in flight. A caller takes half as much memory before its attempt as
 * during it. An answer then takes as long as Redis takes, and not as long as the answers to thousands of earlier calls,
 * so grants do not come late. 50,000 calls at once take half of the memory, and a third of the commands.
 *
 * Callers go on in the order in which they came. Attempts of callers with a signal, and later attempts, do not count.
 */
export class AttemptWindow {
  #previous: Generation = { inFlight: 0 };
  #current: Generation = { inFlight: 0 };
  readonly #heldBack = new LinkedList<HeldBack>();
  /** Callers that were held back, and have not gone on. */
  #held = 0;
  #isResuming = false;
  #isWatching = false;

  get isFull(): boolean {
    return this.#left <= 0 || this.#held > 0;
  }

  /**
   * Resolves when the caller may send its attempt, after `ms` at the latest; rejects when the caller is interrupted.
   * `goesOn` has to be called then.
   */
  holdBack(wait: Wait, ms: number): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      this.#held++;
      wait.throwIfInterrupted();
      new HeldBack(this.#heldBack, ms, wait, resolve, reject);
      if (!this.#isWatching) this.#watch();
    });
  }

  goesOn(): void {
    this.#held--;
    this.#resumeSoon();
  }

  /** An attempt is sent. Returns what `answered` has to be called with when it was answered, or failed. */
  sent(): Generation {
    this.#current.inFlight++;
    return this.#current;
  }

  answered(generation: Generation): void {
    generation.inFlight--;
    this.#resumeSoon();
  }

  /** As many more may be sent. */
  get #left(): number {
    return LARGEST - this.#previous.inFlight - this.#current.inFlight;
  }

  /** Once for all answers that came together: the attempts of the callers that go on then go together too. */
  #resumeSoon(): void {
    if (this.#isResuming || this.#heldBack.first === undefined) return;
    this.#isResuming = true;
    void SOON.then(this.#resumeSome);
  }

  readonly #resumeSome = (): void => {
    this.#isResuming = false;
    for (let left = this.#left; left > 0 && this.#heldBack.first !== undefined; left--) this.#heldBack.first.resume();
  };

  /** While callers are held back, a generation begins now and then. */
  #watch(): void {
    this.#isWatching = true;
    const timer = clock.setTimeout(async () => {
      // After a pause of the event loop answers may lie in the socket's buffer: they are read first.
      await clock.immediate();
      this.#previous = this.#current;
      this.#current = { inFlight: 0 };
      this.#resumeSome();
      if (this.#heldBack.first !== undefined) this.#watch();
      else this.#isWatching = false;
    }, GENERATION);
    timer.unref?.();
  }
}
