const { default: TestSequencer } = require('@jest/test-sequencer');

/** Each is busy for a minute or two: the last one to begin would be what a run waits for. */
const LONGEST = ['proofs/simulation/states', 'proofs/simulation/trace', 'tools/cli/clients', 'proofs/soak/soak'];

const rank = ({ path }) => {
  const index = LONGEST.findIndex((name) => path.endsWith(`${name}.test.ts`));
  return index < 0 ? LONGEST.length : index;
};

/** Without the times of an earlier run, jest begins with the largest file. */
module.exports = class LongestFirst extends TestSequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
};
