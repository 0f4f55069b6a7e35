import type { Mutation } from './mutation';

/** What makes it sound that the callers of a process pass its hold on. */
export const PASSING_ON_MUTATIONS: readonly Mutation[] = [
  {
    name: 'passed-on-without-confirmation',
    finding: 'a hold is passed on long after Redis confirmed it, though its key is gone',
    types: ['pub-sub', 'fair'],
    replacements: [['return isEnough && now - this.sentAt <= FRESH && !this.isSuspectAt(drift(now));', 'return true;']],
  },
  {
    name: 'lease-outlasts-its-hold',
    finding: 'a fixed lease is passed on that ends after the key of its hold',
    types: ['pub-sub', 'fair'],
    replacements: [
      ['return Math.max(renew ? ttl2 / 3 : reliableUntil(0, ttl2), minHold);', 'return 0;'],
      [
        'return Math.min(this.#keyUntil, this.lease?.endsAt ?? Number.POSITIVE_INFINITY);',
        'return Number.isFinite(this.lease?.endsAt) ? this.lease.endsAt : this.#keyUntil;',
      ],
    ],
  },
  {
    name: 'script-in-the-lease-of-another',
    finding: 'a hold is passed on while a script of the application runs under it',
    types: ['pub-sub', 'redisson'],
    replacements: [['const isUnused = hold.evals === 0;', 'const isUnused = true;']],
  },
  {
    name: 'script-holds-up-the-queue',
    finding: 'a lease is released past the next local caller, since a script ran under it',
    types: ['fair'],
    replacements: [
      [
        'if (protocol.exchange !== void 0) return this',
        'if (!isUnused) return void 0;\n    if (protocol.exchange !== void 0) return this',
      ],
    ],
  },
  {
    name: 'used-after-its-release',
    finding: 'the end of a slice releases a hold, and the next caller has a lease of it',
    types: ['pub-sub', 'spin'],
    replacements: [
      [
        'if (typeof answer === "string") return answer;',
        'if (typeof answer === "string") answer = { until: hold.keyUntil, fencingToken: hold.fencingToken };',
      ],
    ],
  },
  {
    name: 'min-hold-passed-on',
    finding: 'a hold is passed on before the minHold of its lease ends',
    types: ['pub-sub'],
    replacements: [['next === void 0 || hold.keep !== void 0', 'next === void 0']],
  },
  {
    name: 'others-not-counted',
    finding: 'a fair hold is passed on though others waited when it was handed over',
    types: ['fair'],
    replacements: [['isAlone: reply === 1', 'isAlone: true']],
  },
  {
    name: 'slow-hand-over',
    finding: 'a call settles late, since its first attempt has the time of the unlock before it',
    types: ['fair'],
    replacements: [['const timeout = Math.min(limit, this.#firstTimeout);', 'const timeout = limit;']],
  },
  {
    name: 'single-attempt-behind-a-short-wait',
    finding: 'a single attempt fails where the last attempt in front had too little time',
    types: ['mixed', 'pub-sub', 'spin'],
    replacements: [['freed === void 0 && !this.#isContended', 'freed === void 0']],
  },
];
