import type { Circus } from '@jest/types';
import TestEnvironment from '../jest-environment';

/** The mutant that a test has found. Stryker runs one mutant after the other in a process. */
let found: string | undefined;

/** The mutant that runs now; `undefined` in the run that looks which tests execute which mutants. */
const activeMutant = (): string | undefined => process.env.__STRYKER_ACTIVE_MUTANT__;

/** One failed test is enough to find a mutant: the tests after that are skipped. Jest has no such option for a call. */
export default class MutantEnvironment extends TestEnvironment {
  override async handleTestEvent(event: Circus.Event, state: Circus.State): Promise<void> {
    await super.handleTestEvent(event, state);
    const mutant = activeMutant();
    if (mutant === undefined) return;
    if (event.name === 'test_start' && found === mutant) event.test.mode = 'skip';
    if (event.name === 'test_done' && event.test.errors.length > 0) found = mutant;
  }
}
