import type { Mutation } from './mutation';

/** What makes the way to a lease sound. */
export const CONTENTION_MUTATIONS: readonly Mutation[] = [
  {
    name: 'late-grant-not-released',
    finding: 'an attempt whose reply was lost, or came too late, leaves its key for the whole ttl',
    types: ['spin', 'pub-sub'],
    replacements: [['if (!isServerAnswer(failure) || isFinal(failure)) this.hold.doubt(attempt);', '']],
  },
  {
    name: 'close-does-not-wait',
    finding: 'close() settles before attempts in flight are followed up: keys are left for their whole ttl',
    types: ['spin', 'pub-sub'],
    replacements: [
      [
        `await within(limit, Promise.all([waits.none(), free]));
    await orphans.removeNow(limit);`,
        '',
      ],
    ],
  },
  {
    name: 'stand-back-without-limit',
    finding: 'one slow reply makes a process leave a free lock alone for seconds',
    types: ['pub-sub'],
    replacements: [
      ['var LONGEST_STEP = 20;', 'var LONGEST_STEP = Infinity;'],
      ['var LONGEST_STAND_BACK = 200;', 'var LONGEST_STAND_BACK = Infinity;'],
    ],
  },
  {
    name: 'stand-back-without-any-limit',
    finding: 'one slow reply long ago makes every later wait stand back',
    types: ['pub-sub'],
    replacements: [
      ['var LONGEST_STEP = 20;', 'var LONGEST_STEP = Infinity;'],
      ['var LONGEST_STAND_BACK = 200;', 'var LONGEST_STAND_BACK = Infinity;'],
      ['var MEMORY = 1e3;', 'var MEMORY = Infinity;'],
    ],
  },
  {
    name: 'silence-is-contention',
    finding: 'null and LockTimeoutError where Redis has been silent',
    types: ['fair', 'pub-sub'],
    replacements: [
      [
        'if (this.#refusal === void 0 || isSilent || isServerAnswer(availability.failure))',
        'if (this.#refusal === void 0)',
      ],
    ],
  },
];
