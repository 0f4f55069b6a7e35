// Plain JavaScript, since Jest does not transform reporters.
const Table = require('cli-table3');

/** Prints a table at the end: scenarios by kind of lock, with their outcome. */
module.exports = class TableReporter {
  onRunComplete(_contexts, { testResults }) {
    const tests = testResults.flatMap((file) => file.testResults);
    const kinds = [...new Set(tests.map(({ ancestorTitles }) => ancestorTitles[0]))];
    const scenarios = [...new Set(tests.map(({ title }) => title))];
    const noRules = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };
    const table = new Table({ head: ['', ...kinds], chars: noRules, style: { head: [], border: [] } });
    for (const scenario of scenarios) {
      table.push([scenario, ...kinds.map((kind) => cell(tests, kind, scenario))]);
    }
    process.stdout.write(`${table}\n`);
  }
};

function cell(tests, kind, scenario) {
  const test = tests.find(({ ancestorTitles, title }) => ancestorTitles[0] === kind && title === scenario);
  if (test === undefined) return '-';
  return test.status === 'passed' ? `passed ${(test.duration / 1000).toFixed(1)} s` : test.status;
}
