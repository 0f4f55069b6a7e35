import type { Circus } from '@jest/types';
import { TestEnvironment as NodeEnvironment } from 'jest-environment-node';

/**
 * Jest fails a test for an unhandled rejection, but forgives one that somebody handles a little later. Node does not: it
 * ends the process. So such a test fails here too.
 */
export default class TestEnvironment extends NodeEnvironment {
  readonly #rejections = new WeakMap<Promise<unknown>, unknown>();

  async handleTestEvent(event: Circus.Event, state: Circus.State): Promise<void> {
    if (event.name === 'error' && event.promise) this.#rejections.set(event.promise, event.error);
    if (event.name === 'error_handled') {
      const error = this.#rejections.get(event.promise);
      state.unhandledErrors.push(
        new Error('A rejection was handled too late: Node would have crashed', { cause: error }),
      );
    }
  }
}
