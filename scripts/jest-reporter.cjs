// Plain JavaScript, since Jest does not transform reporters.
const { setTimeout: sleep } = require('node:timers/promises');

/** The names of the tests that failed, had a second run (`jest-environment.ts`), and passed by it. */
function secondRuns({ testResults: files }) {
  const tests = files.flatMap(({ testResults }) => testResults);
  return tests
    .filter(({ status, invocations }) => status === 'passed' && invocations > 1)
    .map((test) => `  ${test.fullName}`);
}

/** Prints the servers and the counts of the run at the end, and fails the run for errors after the last test. */
module.exports = class Reporter {
  #lateErrors = [];

  /** While a file runs, Jest replaces these handlers; they catch errors between files. */
  onRunStart() {
    for (const event of ['unhandledRejection', 'uncaughtException']) {
      process.on(event, (error) => {
        this.#lateErrors.push(error);
        console.error(`${event} after the tests of a file:`, error);
      });
    }
  }

  async onRunComplete(_contexts, results) {
    await sleep(200); // for late errors of the last file from timers that do not keep the process alive
    // At exit, because Jest prints its own summary after this, and an open handle may still cause an error.
    process.on('exit', () => this.#printSummary(results));
  }

  getLastError() {
    return this.#lateErrors[0];
  }

  #printSummary(results) {
    if (this.#lateErrors.length > 0) process.exitCode = 1;
    // A file that could not be loaded has no failed test.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites + this.#lateErrors.length;
    const skipped = results.numPendingTests + results.numTodoTests;
    const counts = [`${results.numPassedTests} passed`, `${failed} failed`, ...(skipped ? [`${skipped} skipped`] : [])];
    const { TEST_AGAINST, TEST_LEFT_OUT } = process.env;
    const lines = [`against: ${TEST_AGAINST}`, `tests: ${counts.join(', ')}`];
    if (TEST_LEFT_OUT) lines.unshift(`left out: ${TEST_LEFT_OUT}`);
    const again = secondRuns(results);
    if (again.length > 0)
      lines.unshift('passed by a second run, because the machine stood still in the first one:', ...again);
    process.stdout.write(`${lines.join('\n')}\n`);
  }
};
