import { captureContext } from '../internal/background';

/**
 * The signal that aborts when a lease is lost. Its listeners run in the async context in which the signal was first
 * asked for, and never in the context of the code that finds the loss.
 */
export class LossSignal {
  readonly #controller = new AbortController();
  readonly #inContext = captureContext();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#inContext(() => this.#controller.abort(reason));
  }
}
