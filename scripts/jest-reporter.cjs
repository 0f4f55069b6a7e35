// Plain JavaScript, since Jest does not transform reporters.
const { setTimeout: sleep } = require('node:timers/promises');

/** Ends the output with what the tests ran against and how many did, and catches what comes after the last test. */
module.exports = class Reporter {
  #stray = [];

  /** While a file runs, Jest has handlers of its own in place of these; what they miss arrives between files. */
  onRunStart() {
    for (const event of ['unhandledRejection', 'uncaughtException']) {
      process.on(event, (error) => {
        this.#stray.push(error);
        console.error(`${event} after the tests of a file were over:`, error);
      });
    }
  }

  async onRunComplete(_contexts, results) {
    await sleep(200); // for stragglers of the last file whose timers do not keep the process alive
    // At exit, because Jest writes its own summary after this, and an open handle may still bring a straggler.
    process.on('exit', () => this.#conclude(results));
  }

  getLastError() {
    return this.#stray[0];
  }

  #conclude(results) {
    if (this.#stray.length > 0) process.exitCode = 1;
    // A file that could not be run has no failed test in it.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites + this.#stray.length;
    const skipped = results.numPendingTests + results.numTodoTests;
    const counts = [`${results.numPassedTests} passed`, `${failed} failed`, ...(skipped ? [`${skipped} skipped`] : [])];
    const { TEST_AGAINST, TEST_LEFT_OUT } = process.env;
    const lines = [`against: ${TEST_AGAINST}`, `tests: ${counts.join(', ')}`];
    if (TEST_LEFT_OUT) lines.unshift(`left out: ${TEST_LEFT_OUT}`);
    process.stdout.write(`${lines.join('\n')}\n`);
  }
};
