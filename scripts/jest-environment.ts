import { appendFileSync } from 'node:fs';
import { inspect } from 'node:util';
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

/** Of a worker process nobody hears after its last file, nor how it ended: the teardown reads what is noted here. */
const { TEST_REJECTIONS } = process.env;
if (process.send !== undefined && TEST_REJECTIONS !== undefined) {
  process.on('unhandledRejection', (error) => appendFileSync(TEST_REJECTIONS, `${inspect(error)}\n`));
}
