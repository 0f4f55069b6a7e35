// Plain JavaScript, since Jest does not transform sequencers.
const { default: Sequencer } = require('@jest/test-sequencer');

/**
 * The contract suites first. Jest orders by the time that a file took before, and in a new checkout by its size: these
 * files are small, take longest, and would run last, with two workers idle.
 */
module.exports = class ContractFirst extends Sequencer {
  sort(tests) {
    const isContract = ({ path }) => path.includes('/contract/');
    const sorted = super.sort(tests);
    return [...sorted.filter(isContract), ...sorted.filter((test) => !isContract(test))];
  }
};
