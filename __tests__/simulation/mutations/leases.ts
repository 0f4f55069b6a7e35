import type { Mutation } from './mutation';

/** What makes a lease safe, for every lock type. */
export const LEASE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'release-without-check',
    finding: 'a late release deletes the key of the next holder',
    types: ['spin'],
    replacements: [
      [
        `\${examine(held)}\${RETURN_UNLESS_HELD}
\${deleteBy`,
        `\${examine(held)}
\${deleteBy`,
      ],
    ],
  },
  {
    name: 'kept-under-its-owner',
    finding: 'a late release or renewal finds a lock that is kept for its minHold',
    types: ['pub-sub'],
    replacements: [['var KEPT = "kept@";', 'var KEPT = "";']],
  },
  {
    name: 'owner-of-the-process',
    finding: 'every acquisition of a process has the same owner value',
    types: ['spin'],
    replacements: [[`\`\${id}:\${++count2}\``, `\`\${id}:1\``]],
  },
  {
    name: 'deadline-from-the-reply',
    finding: 'a lease is counted from the reply, and not from before its request',
    types: ['spin'],
    replacements: [['return sentAt + ttl2 - (ttl2 * 1e-3 + 1);', 'return clock.now() + ttl2 - (ttl2 * 1e-3 + 1);']],
  },
  {
    name: 'suspension-not-noticed',
    finding: 'the monotonic clock stands still while the machine is suspended: a lease outlives its key',
    types: ['spin'],
    replacements: [['var SUSPENDED = 100;', 'var SUSPENDED = Infinity;']],
  },
  {
    name: 'unread-answers',
    finding: 'a lease is called lost at its deadline though the answer of a renewal lies unread',
    types: ['fair'],
    replacements: [
      [
        `if (this.unread > 0) this.reading ??= this.#readThenLose();
    else this.#loseByDeadline();`,
        'this.#loseByDeadline();',
      ],
    ],
  },
  {
    name: 'no-question-after-reconnect',
    finding: 'a server that was restarted without its data: holders learn it at the next renewal only',
    types: ['spin'],
    replacements: [['backend.onReconnect(() => watchdog.askAboutAll())', 'backend.onReconnect(() => void 0)']],
  },
  {
    name: 'loss-in-foreign-context',
    finding: 'abort listeners run in the async context of the code that finds the loss',
    types: ['spin'],
    replacements: [['this.#inContext(() => this.#controller.abort(reason))', 'this.#controller.abort(reason)']],
  },
];
