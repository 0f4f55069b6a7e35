import { registryClosed } from '../api/errors';
import type { WarningListener } from '../api/warnings';
import { LinkedList } from '../internal/linked-list';
import { LongWaits } from './long-waits';
import type { Wait } from './wait';

/** The calls of a registry that are still acquiring: what `close` interrupts, and what `LongWaits` watches. */
export class OpenWaits {
  readonly #waits = new LinkedList<Wait>();
  readonly longWaits: LongWaits;
  #isClosed = false;
  #whenNone: (() => void) | undefined;

  /** `warnAfter` in ms. */
  constructor(warnAfter: number, onWarning: WarningListener) {
    this.longWaits = new LongWaits(this.#waits, warnAfter, onWarning);
  }

  /** From now on `close` interrupts the wait. Throws when the registry is closed. */
  begin(wait: Wait): void {
    if (this.#isClosed) throw registryClosed(wait.key);
    this.#waits.append(wait);
    this.longWaits.watch();
  }

  end(wait: Wait): void {
    this.#waits.remove(wait);
    if (this.#waits.first === undefined) this.#whenNone?.();
  }

  /** Interrupts all waits, and refuses later ones. */
  close(): void {
    this.#isClosed = true;
    for (const wait of [...this.#waits]) wait.interrupt(registryClosed(wait.key));
  }

  /** Resolves when no wait is left. */
  async none(): Promise<void> {
    if (this.#waits.first === undefined) return;
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve;
    });
  }
}
