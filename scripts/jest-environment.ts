import { appendFileSync } from 'node:fs';
import { inspect } from 'node:util';
import type { Circus } from '@jest/types';
import { TestEnvironment as NodeEnvironment } from 'jest-environment-node';

/**
 * Jest fails a test for an unhandled rejection, except when the rejection is handled a little later. Node ends the process
 * in that case too, so the test fails here.
 */
export default class TestEnvironment extends NodeEnvironment {
  readonly #rejections = new WeakMap<Promise<unknown>, unknown>();

  async handleTestEvent(event: Circus.Event, state: Circus.State): Promise<void> {
    if (event.name === 'error' && event.promise) this.#rejections.set(event.promise, event.error);
    if (event.name === 'error_handled') {
      const error = this.#rejections.get(event.promise);
      state.unhandledErrors.push(
        new Error('A rejection was handled too late: Node would have exited', { cause: error }),
      );
    }
  }
}

/** Jest ignores what a worker process does after its last file. Rejections are written to a file that the teardown reads. */
const { TEST_REJECTIONS } = process.env;
if (process.send !== undefined && TEST_REJECTIONS !== undefined) {
  process.on('unhandledRejection', (error) => appendFileSync(TEST_REJECTIONS, `${inspect(error)}\n`));
}
