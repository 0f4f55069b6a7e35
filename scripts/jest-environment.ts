import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Circus } from '@jest/types';
import { TestEnvironment as NodeEnvironment } from 'jest-environment-node';
import { Lateness } from '../support/lateness';

/** ms for which the machine may keep this process from working. All tests allow for shorter pauses. */
const STALL = 250;

/**
 * Jest fails a test for an unhandled rejection, except when the rejection is handled a little later. Node ends the process
 * in that case too, so the test fails here.
 *
 * A test that fails gets a second run (`jest-each-file.ts`), which counts only if the machine stood still during the
 * first one: leases end meanwhile, as they should. Otherwise the test keeps its errors, whatever the second run says.
 *
 * No two tests of a file have one name: it has to say which of them failed.
 */
export default class TestEnvironment extends NodeEnvironment {
  readonly #rejections = new WeakMap<Promise<unknown>, unknown>();
  #lateness = new Lateness({ ownWork: false });
  #failure: Circus.TestEntry['errors'] = [];

  async handleTestEvent(event: Circus.Event, state: Circus.State): Promise<void> {
    if (event.name === 'error' && event.promise) this.#rejections.set(event.promise, event.error);
    if (event.name === 'error_handled') {
      const error = this.#rejections.get(event.promise);
      state.unhandledErrors.push(
        new Error('A rejection was handled too late: Node would have exited', { cause: error }),
      );
    }
    if (event.name === 'run_start') assertDistinct(namesIn(state.rootDescribeBlock));
    if (event.name === 'test_start') this.#restart();
    if (event.name === 'test_done') this.#failure = this.#lateness.worst < STALL ? event.test.errors : [];
    // Jest has emptied the list of errors for the second run.
    if (event.name === 'test_retry') event.test.errors = this.#failure;
  }

  override async teardown(): Promise<void> {
    this.#lateness.stop();
    await super.teardown();
  }

  #restart(): void {
    this.#lateness.stop();
    this.#lateness = new Lateness({ ownWork: false });
  }
}

/** The names of all tests, with those of the blocks around them. */
function namesIn(block: Circus.DescribeBlock, around = ''): string[] {
  return block.children.flatMap((child) => {
    const name = `${around} › ${child.name}`;
    return child.type === 'test' ? [name] : namesIn(child, name);
  });
}

function assertDistinct(names: readonly string[]): void {
  const again = names.filter((name, i) => names.indexOf(name) < i);
  if (again.length > 0) throw new Error(`Several tests have one name:\n${again.join('\n')}`);
}

/** Jest ignores what a worker process does after its last file. Rejections are written to a file that the teardown reads. */
const { TEST_RUN } = process.env;
if (process.send !== undefined && TEST_RUN !== undefined) {
  process.on('unhandledRejection', (error) => appendFileSync(join(TEST_RUN, 'rejections'), `${inspect(error)}\n`));
}
