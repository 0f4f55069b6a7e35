// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are source code
import { readFileSync } from 'node:fs';
import type { Plugin } from 'esbuild';
import { luaTable, READS_LUA } from './lua-files';
import { findCode, placesNamed } from './places';
import type { Extra } from './simulation/plan-extras';

/**
 * Code that is in this place of `lib` exactly once, and what replaces it. How it is broken into lines is of no account. See
 * `places.ts` for the names of places.
 */
type Change = readonly [place: string, code: string, by: string];

/** A mistake that is put into the library, to show that a judge finds it. */
export interface Mutation {
  /** What goes wrong with it. */
  readonly finding: string;
  /** The types with which the simulation finds it: `npm run simulate -- --mutations`. */
  readonly simulation?: readonly string[];
  /** What the seeds that find it have, of which the simulation plans some only when it is asked to. */
  readonly extra?: Extra;
  /** The types with which a short soak finds it, and what it says then: `npm run soak -- --wrong NAME`. */
  readonly soak?: { readonly types: readonly string[]; readonly kinds: readonly string[] };
  /** The test that finds it, where no seed of the simulation does: `npx jest PATH`. */
  readonly test?: string;
  readonly changes: readonly Change[];
}

/** What a soak may see first when the key of a holder is deleted for another acquisition. */
const KINDS_OF_A_LOST_KEY = ['too many holders', 'lost too early', 'promise broken', 'token does not rise'];

/** By name. The first of each group is about leases, contention, passing on, `fair`, shared locks, and all else. */
export const MUTATIONS = {
  // Leases
  'release-without-check': {
    finding: 'a late release deletes the key of the next holder',
    simulation: ['spin'],
    soak: { types: ['fair', 'pub-sub'], kinds: KINDS_OF_A_LOST_KEY },
    changes: [
      ['common/release', '-- @include common/return-unless-held', "if state == 'expired' then return 0 end"],
      [
        'fair/release',
        "holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)",
        'holder and true',
      ],
      [
        'redisson-fair/release',
        "if state == 'stolen' then return -1 end local reply = 0 if not state then",
        'local reply = 0 do',
      ],
    ],
  },
  'owner-of-the-process': {
    finding: 'every acquisition of a process has the same owner value',
    simulation: ['spin'],
    soak: { types: ['fair', 'pub-sub'], kinds: KINDS_OF_A_LOST_KEY },
    changes: [['ownersOf', 'begin + micros', '`${id}:1`']],
  },
  'min-hold-ignored': {
    finding: 'a lock is free as soon as it is unlocked, whatever its minHold',
    simulation: ['spin'],
    changes: [['Hold.keep', 'minHoldUntil === 0', 'minHoldUntil >= 0']],
  },
  'kept-for-ever': {
    finding: 'a server up to 7.0 deletes a lock that it is to keep for 1 ms, and it is written anew without an expiry',
    simulation: ['redisson', 'redisson-fair'],
    changes: [
      ['redisson/give', "redis.call('HDEL', lock, '')", "redis.call('PEXPIRE', lock, left)"],
      ['redisson/give', "redis.call('PEXPIRE', lock, left)", ''],
    ],
  },
  'kept-under-its-owner': {
    finding: 'a late release or renewal finds a lock that is kept for its minHold',
    simulation: ['pub-sub'],
    changes: [['KEPT', 'kept@', '']],
  },
  'deadline-from-the-reply': {
    finding: 'a lease is counted from the reply, and not from before its request',
    simulation: ['spin'],
    changes: [['reliableUntil', 'return sentAt + ttl', 'return clock.now() + ttl']],
  },
  'suspension-not-noticed': {
    finding: 'the monotonic clock stands still while the machine is suspended: a lease outlives its key',
    simulation: ['spin'],
    changes: [['SUSPENDED', '100', 'Infinity']],
  },
  'unread-answers': {
    finding: 'a lease is called lost at its deadline though the answer of a renewal lies unread',
    simulation: ['fair'],
    changes: [
      ['Hold.loseIfDue', '(this.unread > 0) this.more.reading ??= this.readThenLose();', '(this.unread < 0) return;'],
    ],
  },
  'renewal-counted-twice': {
    finding: 'a renewal fails at its deadline after its answer was read: the lease is never renewed again',
    simulation: ['spin', 'semaphore'],
    changes: [['ScriptCommand.#fail', 'if (this.#isSettled) return;', '']],
  },
  'no-question-after-reconnect': {
    finding: 'a server that was restarted without its data: holders learn it at the next renewal only',
    simulation: ['spin'],
    changes: [['BackedLockRegistry.constructor', '(() => watchdog.askAboutAll())', '(() => undefined)']],
  },
  'loss-in-foreign-context': {
    finding: 'abort listeners run in the async context of the code that finds the loss',
    simulation: ['spin'],
    changes: [
      [
        'LossSignal.abort',
        'this.runInAsyncScope(() => this.#controller.abort(reason))',
        'this.#controller.abort(reason)',
      ],
    ],
  },

  'adopt-without-compare': {
    finding: 'a lease is adopted whoever has its key by now',
    simulation: ['spin', 'fair'],
    changes: [
      ['common/examine-to-give', 'if not isGiven then -- @include common/return-unless-held end', 'isGiven = isGiven'],
    ],
  },
  'renewed-after-detach': {
    finding: 'the process that has detached a lease goes on renewing it, and is told that it is lost',
    simulation: ['spin'],
    changes: [['RedisLease.detach', 'hold.unlocked();', '']],
  },
  'entered-before-adopted': {
    finding: 'a process relies on a lease that it adopts before Redis has answered',
    simulation: ['spin'],
    changes: [
      [
        'Adoptions.#try',
        'answer = await travel.adopt(from, hold, timeout)',
        `asked = travel.adopt(from, hold, timeout);
      void asked.catch(() => undefined);
      const { owner, ttl, sentAt, drift } = hold;
      const answer: Grant | NotHeld = { granted: true, owner, until: sentAt + ttl, fencingToken: undefined, drift }`,
      ],
    ],
  },
  'adopted-anew': {
    finding: 'an adoption without an answer is repeated with another owner value: the lease is lost to itself',
    simulation: ['spin', 'pub-sub'],
    changes: [['Adoptions.#adoptionOf', 'this.#unanswered.set(from, adoption);', '']],
  },

  // Locks that are taken from their holders
  'taken-from-the-unheard': {
    finding: 'a lock is taken from a holder whose process hears nothing',
    simulation: ['spin', 'fair'],
    extra: 'replaced',
    changes: [['common/replace', 'if (tonumber(heard) or 0) < tonumber(ARGV[6]) then return -2 end', '']],
  },
  'entered-when-taken': {
    finding: 'a caller enters as soon as it has taken the lock, while the task before runs',
    simulation: ['spin', 'pub-sub'],
    extra: 'replaced',
    soak: { types: ['spin', 'pub-sub'], kinds: ['promise broken', 'too many holders'] },
    changes: [['Replacements.#entered', 'await wait.unlessOver(Promise.race([over, lost]))', 'await undefined']],
  },
  'ended-with-the-signal': {
    finding: 'a process says that a task has ended when its signal aborts',
    simulation: ['spin', 'redisson'],
    extra: 'replaced',
    changes: [['Inbox.lost', 'if (isUnlocked)', 'if (isUnlocked || hold)']],
  },
  'ended-before-the-grant': {
    finding: 'a process says that a task has ended whose grant is on its way: messages have another connection',
    simulation: ['spin', 'pub-sub'],
    extra: 'replaced',
    changes: [
      [
        'Inbox.#leasesOf',
        'await Promise.allSettled(',
        'if (locks.length >= 0) return undefined; await Promise.allSettled(',
      ],
      ['Inbox.#taken', 'if ((await this.#leasesOf(owner, locks)).length > 0) return this.#taken(owner, by, name);', ''],
    ],
  },
  'ended-before-it-began': {
    finding: 'a caller is replaced while it waits for the end of a task, and says that it has ended itself',
    simulation: ['spin', 'fair'],
    extra: 'replaced',
    changes: [['Replacements.#take', 'inbox.begins(owner);', '']],
  },
  'left-in-its-grace': {
    finding: 'a caller leaves before the task has ended whose lock it took, and frees the lock',
    simulation: ['spin', 'pub-sub'],
    extra: 'replaced',
    changes: [
      [
        'Replacements.#entered',
        'void over.then(() => lease[Symbol.asyncDispose]())',
        'void lease[Symbol.asyncDispose]()',
      ],
    ],
  },
  'freed-when-taken-late': {
    finding: 'what takes a lock is executed long after its caller left, and the lock is free at once: two tasks run',
    test: '__tests__/core/told/lost-messages.test.ts',
    changes: [['Replacements.#take', 'lease === null && !isEndSaid && grace > 0', 'false']],
  },
  'refused-by-a-repetition': {
    finding: 'a client repeats the command that takes a lock, which another call has taken on: two tasks run',
    simulation: ['spin'],
    extra: 'replaced',
    changes: [['Replacements.#take', 'connection.disruptions !== disruptions', 'false']],
  },
  'freed-after-a-silence': {
    finding: 'a lock is taken by an answer that came after a silence, and freed at once: its holder is still at work',
    simulation: ['spin'],
    extra: 'replaced',
    changes: [['Replacements.#take', 'if (mayHaveIt)', 'if (mayHaveIt && (lease !== null || refusal !== undefined))']],
  },
  'told-at-the-next-renewal': {
    finding: 'a process that hears that a lock of its was taken does not ask Redis before the next renewal',
    simulation: ['spin', 'fair'],
    extra: 'replaced',
    changes: [['Inbox.#taken', 'hold.isHeld ?', '!hold.isHeld ?']],
  },
  'not-reminded': {
    finding: 'a message about a task that has ended is lost, and its successor waits for all of the grace',
    simulation: ['spin', 'pub-sub'],
    extra: 'replaced',
    changes: [['Succession.#next', 'if (clock.now() < endsAt)', 'if (clock.now() < 0)']],
  },
  'asked-in-vain': {
    finding: 'a holder that is asked for its lock is not told',
    simulation: ['spin', 'fair'],
    extra: 'replaced',
    changes: [['Inbox.#askedFor', 'this.#signals.get(lease)?.abort(reason)', '']],
  },

  // once
  'task-run-though-done': {
    finding: 'a caller of once that has waited for the lock runs the task, though its result is there',
    simulation: ['spin', 'pub-sub'],
    changes: [['Once.#perform', 'if (there !== undefined) return there;', '']],
  },
  'task-of-nobody': {
    finding: 'a caller of once has left when the lock is there, and its task runs',
    simulation: ['spin', 'fair'],
    changes: [['Once.#leave', 'attempt?.waiting.abort();', '']],
  },
  'error-of-a-caller-that-left': {
    finding: 'a task of once fails after its caller has left, and rejects the callers that wait',
    simulation: ['spin', 'fair'],
    extra: 'callers of once leave',
    changes: [['Once.#failed', '!hasLeft && isOfAll', 'isOfAll']],
  },
  'forgotten-result-kept': {
    finding: 'a result of once is kept whose task began before forget()',
    simulation: ['spin', 'redisson'],
    changes: [['once/store-result', 'if mark and mark ~= ARGV[3] then return 0 end', '']],
  },
  'left-with-the-first': {
    finding: 'one caller of once leaves, and those that have joined it are rejected',
    simulation: ['spin', 'pub-sub'],
    extra: 'callers of once leave',
    changes: [
      [
        'Once.#leave',
        'void clock.immediate().then(() => this.#nextLeads(lock, flight))',
        `this.#over(lock, flight);
    for (const other of flight.callers) other.fail(attempt?.waiting.signal.reason)`,
      ],
    ],
  },
  'task-of-the-first': {
    finding: 'the first caller of once leaves, and its task runs for those that have joined it',
    simulation: ['spin', 'pub-sub'],
    extra: 'callers of once leave',
    changes: [
      [
        'Once.#lead',
        'attempt = new Attempt(caller)',
        `{ task } = ((flight as { first?: Caller }).first ??= caller);
    const attempt = new Attempt(Object.assign(caller, { task }))`,
      ],
    ],
  },
  'asked-once-for-the-result': {
    finding: 'a connection breaks while once looks for the result, and its callers are rejected that have time to wait',
    simulation: ['spin', 'pub-sub'],
    extra: 'once in trouble',
    changes: [
      [
        'Once.#fly',
        '#asked(lock, flight, attempt, (timeout) => this.#results.read(result, timeout))',
        `#results.read(result, this.#timeout).catch((error: unknown) => {
      throw mayNotBe('read', key, error);
    })`,
      ],
    ],
  },
  'forgotten-result-given': {
    finding: 'a caller of once gets a result that its process has forgotten before it called',
    test: '__tests__/unit/once.test.ts',
    changes: [['Once.forget', 'this.#flights.delete(lock.key);', '']],
  },

  // Contention
  'late-grant-not-released': {
    finding: 'an attempt whose reply was lost, or came too late, leaves its key for the whole ttl',
    simulation: ['spin', 'pub-sub'],
    changes: [['Attempts.failed', 'if (!isAnswer || mayHaveWritten(error)) this.doubt(attempt);', '']],
  },
  'close-does-not-wait': {
    finding: 'close() settles before attempts in flight are followed up: keys are left for their whole ttl',
    simulation: ['spin', 'pub-sub'],
    changes: [
      ['BackedLockRegistry.#close', 'await within(limit, Promise.all([waits.none(), free]))', 'void free'],
      ['BackedLockRegistry.#close', 'givingBack.removeNow(limit),', ''],
    ],
  },
  'reason-taken-for-an-answer': {
    finding: 'a caller aborts with an error that reads like an answer of Redis, and its attempt is not followed up',
    simulation: ['spin', 'pub-sub', 'semaphore'],
    changes: [['Call.#failed', 'if (wait.isInterrupted)', 'if (wait.isInterrupted && !isServerAnswer(error))']],
  },
  'given-up-with-the-client': {
    finding: 'a client is closed and connected again: what was to be removed stays until its ttl ends',
    simulation: ['spin', 'redisson-fair', 'semaphore'],
    changes: [['FollowUp.#remove', 'client is closed', 'gone']],
  },
  'asked-for-nobody': {
    finding: 'a closed client turns a caller away, and its ticket is polled for ever',
    simulation: ['fair'],
    changes: [['isWithoutEffect', 'isClientClosed(error) ||', '']],
  },
  'deaf-after-a-closed-client': {
    finding: 'a client gives up, and is connected again: no process of its registry listens any more',
    test: '__tests__/unit/subscriptions.test.ts',
    changes: [['Subscriber.#duplicate', 'if (isCurrent()) this.#lost();', '']],
  },
  'listens-again-at-once': {
    finding: 'a SUBSCRIBE that is refused is tried again every 10 ms',
    simulation: ['pub-sub', 'redisson'],
    changes: [['RETRY_AFTER', '10_000', '10']],
  },
  'removals-queued-again': {
    finding: 'while Redis is away, each acquisition that was given up queues another removal every 6 s',
    simulation: ['pub-sub', 'fair'],
    changes: [['FollowUp.#remove', 'answerOf(', '(']],
  },
  'removed-again-and-again': {
    finding:
      'after one lost connection, each acquisition is removed again every few ms for as long as its key may live',
    simulation: ['spin'],
    soak: { types: ['pub-sub', 'spin'], kinds: ['too many commands'] },
    changes: [['AGAIN_AFTER', '= [1_000, 10_000]', ': number[] = new Array(10_000).fill(5)']],
  },
  'stand-back-without-any-limit': {
    finding: 'one slow reply long ago makes every later wait stand back',
    simulation: ['pub-sub'],
    changes: [
      ['LONGEST_STEP', '20', 'Infinity'],
      ['LONGEST_STAND_BACK', '200', 'Infinity'],
      ['MEMORY', '1_000', 'Infinity'],
    ],
  },
  'mark-not-read': {
    finding: 'a busy process keeps the lock while one waits whose connection for messages the server does not count',
    simulation: ['pub-sub', 'redisson'],
    extra: 'half open',
    changes: [['common/confirm-or-release', 'or isWanted', '']],
  },
  'no-mark-left': {
    finding: 'a waiter whose connection for messages the server does not count leaves no mark, and is never found',
    simulation: ['pub-sub', 'redisson'],
    extra: 'half open',
    changes: [['ContendedProtocol.newWaiting', "subscriber && names.companionOrNone('wanted')", 'undefined']],
  },
  'silence-is-contention': {
    finding: 'null and LockTimeoutError where Redis has been silent',
    simulation: ['fair', 'pub-sub'],
    changes: [['Call.#assertContended', '|| isSilent || isServerAnswer(availability.failure)', '']],
  },
  'behind-a-short-attempt': {
    finding: 'a call behind another one fails where the last attempt of that had too little time',
    simulation: ['mixed', 'pub-sub', 'spin'],
    changes: [
      [
        'Patience.withoutTurn',
        'if ((await this.#isAttemptAnswered(left)) || !this.#lock.isSilent) return undefined',
        'await this.#isAttemptAnswered(left)',
      ],
      [
        'Patience.#behindTurn',
        'if ((await this.#isAttemptAnswered(this.#call.timeLeft())) ?? !lock.isSilent) return undefined;',
        '',
      ],
    ],
  },

  // Promptness
  'final-answers-retried': {
    finding: 'a call that Redis refuses for good goes on until its wait is over',
    simulation: ['spin', 'pub-sub', 'fair', 'semaphore'],
    changes: [['isFinal', '!answer.passes', 'false']],
  },
  'renewal-without-limit': {
    finding: 'renew() of an application goes on when its lease is over',
    simulation: ['spin', 'redisson'],
    changes: [['RedisLease.renew', 'this.until - now,', '']],
  },
  'release-retried': {
    finding: 'an unlock that Redis refuses for good is tried again until its time is over',
    simulation: ['spin', 'fair'],
    changes: [['repeated', 'isFinal(error) ||', '']],
  },

  // Passing on within a process
  'passed-on-without-confirmation': {
    finding: 'a hold is passed on long after Redis confirmed it, though its key is gone',
    simulation: ['pub-sub', 'fair'],
    changes: [
      [
        'Hold.isFreshFor',
        'isEnough && now - since <= FRESH && !this.isSuspectAt(drift(now)) && !this.mayBeOutdated',
        'true',
      ],
    ],
  },
  'lease-outlasts-its-hold': {
    finding: 'a fixed lease is passed on that ends after the key of its hold',
    simulation: ['pub-sub', 'fair'],
    changes: [
      ['neededFor', 'Math.max(renew ? ttl / 3 : reliableUntil(0, ttl), minHold)', '0'],
      [
        'Hold.until',
        'Math.min(this.keyUntil, this.lease?.endsAt ?? Number.POSITIVE_INFINITY)',
        'Number.isFinite(this.lease?.endsAt) ? (this.lease?.endsAt as number) : this.keyUntil',
      ],
    ],
  },
  'script-in-the-lease-of-another': {
    finding: 'a hold is passed on while a script of the application runs under it',
    simulation: ['pub-sub', 'redisson'],
    changes: [['Passing.passOn', 'isUnused = hold.evals === 0', 'isUnused = true']],
  },
  'script-holds-up-the-queue': {
    finding: 'a lease is released past the next local caller, since a script ran under it',
    simulation: ['fair'],
    changes: [
      [
        'Passing.passOn',
        'if (protocol.exchange !== undefined)',
        'if (!isUnused) return undefined; if (protocol.exchange !== undefined)',
      ],
    ],
  },
  'used-after-its-release': {
    finding: 'the end of a slice releases a hold, and the next caller has a lease of it',
    simulation: ['pub-sub', 'spin'],
    changes: [
      ['Passing.passOn', 'return answer', 'answer = { until: hold.keyUntil, fencingToken: ended.fencingToken }'],
    ],
  },
  'min-hold-passed-on': {
    finding: 'a hold is passed on before the minHold of its lease ends',
    simulation: ['pub-sub'],
    changes: [['Passing.passOn', 'keep === undefined &&', '']],
  },
  'others-not-counted': {
    finding: 'a fair hold is passed on though others waited when it was handed over',
    simulation: ['fair'],
    changes: [['FairFormat.read', 'said.isAlone = reply === 1 || moreTokens > 0', 'said.isAlone = true']],
  },
  'token-used-twice': {
    finding: 'two leases of a hold get the same token of its block',
    simulation: ['spin', 'redisson'],
    changes: [['Hold.takeToken', 'tokens.next++', 'tokens.next']],
  },
  'block-not-kept-in-the-counter': {
    finding: 'the counter is the first token of a block: the next holder gets the others too if the clock was set back',
    test: '__tests__/kinds/fencing/blocks.test.ts',
    changes: [['common/mint-block', '+ count - 1', '']],
  },
  'block-used-to-its-end': {
    finding: 'a hold is passed on with more tokens than it has',
    simulation: ['redisson'],
    changes: [
      [
        'Hold.isFreshFor',
        'if (this.#tokens?.left === 0) return false',
        'if (this.#tokens?.left === 0) this.#tokens.left = 1',
      ],
    ],
  },
  'rest-of-a-block-used-later': {
    finding: 'what is left of a block when its hold ends goes to leases of the next hold',
    simulation: ['pub-sub', 'fair'],
    changes: [
      [
        'Hold.receive',
        'this.#tokens = ',
        'this.#tokens = (this.protocol as { rest?: { next: number; left: number } }).rest?.left ? (this.protocol as { rest?: { next: number; left: number } }).rest : ',
      ],
      ['Hold.takeToken', 'tokens.left--;', 'tokens.left--; Object.assign(this.protocol, { rest: tokens });'],
    ],
  },
  'block-of-nobody': {
    finding: 'a script mints tokens for a process that is not the holder, which passes its lost hold on',
    simulation: ['spin', 'pub-sub'],
    changes: [['common/confirm-or-release', 'state then', 'state and not KEYS[2] then']],
  },
  'slow-hand-over': {
    finding: 'a call settles late, since its first attempt has the time of the unlock before it',
    simulation: ['fair'],
    changes: [
      [
        'Call.exchange',
        'answered(attempt, Math.min(this.#firstTimeout(), this.#patience.leftOfSilence(hold.sentAt)))',
        'attempt',
      ],
    ],
  },

  // fair
  'grant-without-own-owner': {
    finding: 'a grant by hand-over has the ticket itself as its owner',
    simulation: ['fair'],
    changes: [['fair/functions', ".. '@' .. digits(now)", '']],
  },
  'entered-grant-forgotten': {
    finding: 'a message that comes again releases the lease that runs',
    simulation: ['fair'],
    changes: [['FairProtocol.take', '|| owner === this.#entered', '']],
  },
  'grants-for-the-full-ttl': {
    finding: 'a grant by hand-over that nobody takes keeps the lock for the full ttl',
    simulation: ['fair'],
    changes: [['fair/functions', "owner, 'PX', window).err", "owner, 'PX', ttl).err"]],
  },
  'positions-from-the-end-of-the-local-wait': {
    finding: 'a caller that waited in its process goes behind later callers of other processes',
    simulation: ['fair', 'semaphore', 'read-write'],
    changes: [['Hold.waited', '1_000 * (sentAt - since)', '0 * (sentAt - since)']],
  },
  'next-caller-before-the-queue': {
    finding: 'the next caller of a process gets the lock before one of another process that called earlier',
    simulation: ['fair'],
    changes: [['fair/pass-on', 'now - age < firstAt and firstAt <= now + SET_BACK', 'true']],
  },
  'polls-create-tickets': {
    finding: 'a poll that is executed late leaves a ticket',
    simulation: ['fair'],
    changes: [
      [
        'fair/poll',
        "local score = ttl and redis.call('ZSCORE', queue, ticket)",
        `ttl = ttl or '30000'
local score = redis.call('ZSCORE', queue, ticket) or digits(now)
redis.call('ZADD', queue, score, ticket)`,
      ],
    ],
  },
  'entry-without-proof': {
    finding: 'a grant is counted from the arrival of its message',
    simulation: ['fair'],
    changes: [['FairProtocol.onMessage', 'ticket.sentAt', 'now']],
  },
  'suspension-of-a-waiter-not-noticed': {
    finding: 'a message was made long before it arrived, since the machine was suspended',
    test: '__tests__/unit/fair-protocol.test.ts',
    changes: [['FairProtocol.onMessage', '&& !wasSuspended(ticket.drift, driftNow)', '']],
  },
  'no-polls': {
    finding: 'a waiter that is not notified waits for ever',
    simulation: ['fair'],
    changes: [['Presence.schedulePoll', 'pollTimer.schedule(this.#pollNow, clock.now() +', 'void (clock.now() +']],
  },
  'pause-by-the-clock-of-the-server': {
    finding: 'the clock of the server goes back, and a free lock is left to pollers until it has caught up',
    simulation: ['fair'],
    changes: [['fair/functions', 'at - now <= LONGEST_PAUSE_MICROS and', '']],
  },
  'token-of-nobody': {
    finding: 'a lease without a token where another process without fencing granted it',
    simulation: ['fair'],
    changes: [['FairProtocol.offer', "isFencing && grant.token === ''", 'isClosed']],
  },
  'token-of-an-earlier-grant': {
    finding: 'a lease gets the token of an earlier grant',
    simulation: ['fair', 'mixed'],
    changes: [['fair/functions', '(not grantedAt or last == grantedAt) and', '']],
  },
  'kept-grant-forgotten': {
    finding: 'a repeated message about a grant releases its lock before it is kept for its minHold',
    test: '__tests__/unit/fair-ends.test.ts',
    changes: [
      [
        'FairProtocol.end',
        'return this.ask(script, args, next, now, timeout, answered, keep === undefined ? ownerOrTicket : undefined)',
        'if (keep !== undefined) this.#entered = undefined; return this.ask(script, args, next, now, timeout, answered, ownerOrTicket)',
      ],
    ],
  },
  'unreachable-not-noticed': {
    finding: 'no message reaches a process, which goes on waiting for one: it is passed over until its connection ends',
    simulation: ['fair'],
    extra: 'half open',
    changes: [['fair/poll', "how == 'message' and notify(process, 'poll') == 0 and not refused", 'false']],
  },
  'late-message-not-noticed': {
    finding:
      'polls find the grants of a process that no message reaches, each of which lies there for most of its window',
    simulation: ['fair'],
    extra: 'half open',
    changes: [['fair/poll', "or isLate and how == 'message' and notedHow == how", '']],
  },
  'hears-before-redis-knows': {
    finding: 'a process that hears again gets no message about a grant, as one that polls, and polls seldom',
    simulation: ['fair'],
    extra: 'half open',
    changes: [
      [
        'Presence.notifiedBy',
        'this.#deafUntil === undefined',
        '(this.#deafUntil === undefined || clock.now() >= this.#deafUntil)',
      ],
    ],
  },
  'granted-where-nobody-is-counted': {
    finding: 'a process that listens at a replica enters by the message about a grant that went to the next one',
    simulation: ['fair'],
    extra: 'listens at a replica',
    changes: [['fair/functions', 'if tonumber(counted[2]) == 0 then return 0 end', '']],
  },
  'evicted-lock-hears-on': {
    finding: 'a lock that was evicted releases the grants of the waiters of the one that was made anew',
    simulation: ['fair'],
    changes: [['FairProtocol.take', '|| this.#isRetired', '']],
  },

  // redisson-fair
  'place-by-its-timeout': {
    finding: 'a waiter whose queue was deleted is never entered again, since it still has a timeout',
    simulation: ['redisson-fair'],
    changes: [
      [
        'redisson-fair/acquire',
        "(isQueued and redis.call('ZSCORE', timeouts, owner))",
        "redis.call('ZSCORE', timeouts, owner)",
      ],
      [
        'redisson-fair/remove-stale',
        "if not head then -- @include common/delete DELETE_COMMAND='UNLINK' DELETED_KEYS=timeouts end",
        '',
      ],
    ],
  },

  // Shared locks
  'queue-without-an-expiry': {
    finding: 'the queue of a shared lock stays in Redis when its processes have died',
    simulation: ['semaphore', 'read-write'],
    changes: [
      [
        'shared/write-queue',
        "if redis.call('PTTL', waiters) < keptFor then redis.call('PEXPIRE', waiters, keptFor) end",
        'local _ = keptFor',
      ],
    ],
  },
  'one-permit-too-many': {
    finding: 'one more than the permits of a semaphore enter',
    simulation: ['semaphore'],
    soak: { types: ['semaphore'], kinds: ['too many holders'] },
    changes: [['shared/queue', '(permits or 1)', '(permits or 1) + 1']],
  },
  'tickets-not-counted': {
    finding: 'a caller takes the permit of one that waits in front of it',
    simulation: ['semaphore'],
    changes: [['shared/queue', 'holders = holders + permitsOf(waiter.ticket)', '']],
  },
  'permits-counted-once': {
    finding: 'a caller that has several permits counts as one that has one',
    simulation: ['semaphore'],
    changes: [
      ['shared/queue', 'held + permitsOf(holder) end', 'held + 1 end'],
      ['shared/queue', 'held + sign * permitsOf(owner)', 'held + sign'],
    ],
  },
  'permits-counted-twice': {
    finding: 'one permit more is counted for each holder: others wait though there are enough',
    simulation: ['semaphore'],
    changes: [
      ['shared/queue', 'held + permitsOf(holder) end', 'held + permitsOf(holder) + 1 end'],
      ['shared/queue', 'permitsOf(owner)', '(permitsOf(owner) + 1)'],
    ],
  },
  'permits-passed-on-as-they-are': {
    finding: 'the hold of a caller with one permit goes to one that asks for several',
    simulation: ['semaphore'],
    changes: [['Hold.isFreshFor', '&& this.permits === request.permits', '']],
  },
  'latest-permits-ignored': {
    finding: 'while somebody waits, the number of a later call does not count',
    simulation: ['semaphore'],
    changes: [['shared/take-permits', 'laterBy and', 'false and']],
  },
  'deaf-though-proved': {
    finding:
      'no message of a process to itself arrives, and it goes on waiting for one: each of its turns takes a poll',
    simulation: ['read-write'],
    extra: 'half open',
    changes: [
      ['Proof.#judge', 'this.isDeaf = true', 'this.isDeaf = false'],
      // A turn that came without a message would show it, too.
      ['Waiting.missedItsTurn', 'this.#last = { holder: undefined, hints: this.hints, isDeaf: true }', 'return'],
    ],
  },
  'half-released-is-lost': {
    finding: 'a release stops half-way while a slot moves, and the next try is told of a lease that was lost',
    simulation: ['read-write'],
    extra: 'slot moves',
    changes: [
      ['GivingBack.within', 'hold.attempts.giveBackFailed', 'if (!isErrorReply(error)) hold.attempts.giveBackFailed'],
    ],
  },
  'half-passed-on-is-lost': {
    finding: 'what passes a hold on stops half-way while a slot moves, and the release after it is told of a loss',
    simulation: ['semaphore', 'read-write'],
    extra: 'slot moves',
    changes: [['releaseAfter', 'hold.attempts.giveBackFailed(error);', '']],
  },
  'refused-while-a-slot-moves': {
    finding: 'a slot moves to another node, and calls and releases are rejected that could be repeated',
    simulation: ['read-write', 'semaphore'],
    extra: 'slot moves',
    changes: [['ERRORS', 'to access a non local key', 'in vain']],
  },
  'not-tried-again': {
    finding: 'a slot moves to another node, and a refusal that ends with that counts as final',
    simulation: ['semaphore', 'read-write'],
    extra: 'slot moves',
    changes: [['ERRORS', "{ code: 'TRYAGAIN', passes: true },", "{ code: 'TRYAGAIN' },"]],
  },
  'reader-beside-writer': {
    finding: 'a reader enters while a writer is inside',
    simulation: ['read-write'],
    soak: { types: ['read-write'], kinds: ['too many holders'] },
    changes: [['shared/queue', 'return not isWritten end', 'return true end']],
  },
  'writer-beside-reader': {
    finding: 'a writer enters while readers are inside',
    simulation: ['read-write'],
    changes: [['shared/queue', 'return holders == 0 end', 'return not isWritten end']],
  },
  'reader-before-waiting-writer': {
    finding: 'readers that come later enter before a writer that waits',
    simulation: ['read-write'],
    changes: [['shared/queue', 'isOpen and mayEnter', 'mayEnter']],
  },
  'reader-joins-before-waiting-writer': {
    finding: 'a reader enters beside others of its process though a writer waits',
    simulation: ['read-write'],
    changes: [['SharedProtocol.#enter', 'token === 1 ? writers : undefined', 'writers']],
  },
  'released-though-taken-over': {
    finding: 'a position in the queue that the next caller has taken over is given back by the one before',
    simulation: ['semaphore'],
    changes: [['Call.receive', 'isHandedOn ? undefined :', '']],
  },
  'group-never-closes': {
    finding: 'the readers of a process take in others for as long as their hold is renewed',
    simulation: ['read-write'],
    changes: [['SharedProtocol.mayPassOn', '&& now - hold.acquiredAt <= FRESH', '']],
  },
  'writers-follow-each-other': {
    finding: 'readers that wait while a writer leaves wait for the next one too',
    simulation: ['read-write'],
    changes: [['shared/queue', "wasWritten and holders == 0 and waiter.kind == 'read'", 'false']],
  },
  'let-in-before-min-hold': {
    finding: 'waiters are let in while a permit, or a lock, stays taken until its minHold ends',
    simulation: ['read-write'],
    changes: [['shared/release', 'letIn(nil, channel, not keeps)', 'letIn(nil, channel, true)']],
  },
  'ended-leases-counted': {
    finding: 'the permit of a process that died is never free again while others hold the rest',
    simulation: ['semaphore'],
    changes: [['shared/queue', 'first and tonumber(firstEnd) <= now', 'false']],
  },
  'kept-permit-free': {
    finding: 'a permit is free before the minHold of its caller ends',
    simulation: ['semaphore'],
    changes: [
      [
        'shared/release',
        "redis.call('ZADD', lock, digits(now + math.max(1, math.ceil(math.min(left, minHold - age)))), kept)",
        '',
      ],
    ],
  },
  'silence-behind-others': {
    finding: 'a caller behind another one of its process gets null though Redis has been silent',
    simulation: ['semaphore', 'read-write'],
    changes: [['Patience.withoutTurn', '!this.#availability.isSilent(now) &&', '']],
  },
  'let-in-by-a-replaced-server': {
    finding:
      'a message of a server that was replaced while it was frozen lets a caller in beside those of the next one',
    simulation: ['fair'],
    changes: [['Call.#contend', 'this.#mayBeOutdated(sentAt, this.#lock.names.lock)', 'false']],
  },
  'asked-once-in-a-call': {
    finding: 'a call that has asked once more for its grant trusts a server that was replaced after that',
    simulation: ['spin'],
    changes: [['Repetitions.areLeft', 'this.#count < MOST_REPETITIONS', 'this.#count < 1']],
  },
  'granted-by-a-replaced-server': {
    finding: 'a server that was replaced while it was frozen grants what the next one has granted to another process',
    simulation: ['semaphore', 'read-write'],
    changes: [['Call.#contend', 'if (!this.#mayBeOutdated(hold.sentAt))', '']],
  },
  'tickets-for-ever': {
    finding: 'the ticket of a process that died holds up all others',
    simulation: ['semaphore', 'read-write'],
    changes: [['shared/queue', 'ticket == member or tonumber(second) > now and not isAhead', 'second']],
  },
  'ticket-by-the-clock-of-the-server': {
    finding: 'the clock of the server goes back, and the ticket of a process that died holds up all others until then',
    simulation: ['semaphore', 'read-write'],
    changes: [['shared/queue', 'enterUntil and enterUntil - now > SET_BACK', 'false']],
  },

  // minReplicas
  'wait-over-another-connection': {
    finding: 'the connection is lost between a write and its WAIT, which counts replicas that have not got the lock',
    simulation: ['spin', 'pub-sub', 'semaphore'],
    changes: [['ReplicatingConnection.replicated', 'this.#epoch !== before', 'this.#epoch < before']],
  },
  'ticket-used-again': {
    finding: 'a give-back without an answer comes late, and removes the next grant of the same owner value',
    simulation: ['spin', 'redisson', 'semaphore'],
    changes: [['Call.#failed', 'this.#asleep(undefined)', 'undefined']],
  },
  'kept-without-replicas': {
    finding: 'a grant that too few replicas acknowledged stays in Redis, though its caller did not get it',
    simulation: ['spin', 'pub-sub', 'fair'],
    changes: [
      [
        'Unreplicated.giveBack',
        'givingBack.within(limit, hold)',
        "Promise.resolve({ outcome: 'released', isRepeated: false })",
      ],
    ],
  },
  'too-few-replicas': {
    finding: 'a grant counts though fewer replicas than minReplicas acknowledged it',
    simulation: ['spin', 'fair', 'semaphore'],
    changes: [['ReplicatingConnection.replicated', 'replicas >= minReplicas', 'replicas >= 0']],
  },

  // Several keys, force, scripts
  'several-overtaken-for-ever': {
    finding: 'a call for several keys that are never free at once is not granted',
    test: '__tests__/multi/client.test.ts',
    changes: [['MultiAcquisition.#keepsNone', '>= OVERTAKEN_FOR', '>= Number.POSITIVE_INFINITY']],
  },
  'several-never-woken': {
    finding: 'a call for several keys does not learn that a key which it waits for is free in its process',
    simulation: ['multi'],
    changes: [
      ['CallsForSeveral.freed', 'if (this.#keys.size > 0) this.#lookSoon();', ''],
      ['MultiAcquisition.#waitUntilFree', 'Math.min(wait.remaining, OVERTAKEN_FOR)', 'wait.remaining'],
    ],
  },
  'part-kept-after-giving-up': {
    finding: 'a lock of several keys that is given up keeps the parts that it had',
    simulation: ['multi'],
    soak: { types: ['multi'], kinds: ['left in Redis', 'no progress'] },
    changes: [['MultiAcquisition.#giveUp', '[this.#release(0), ...late]', 'late']],
  },
  'late-answer-is-the-last': {
    finding: 'a client repeats an attempt whose caller has left, and the first copy takes the lock after the removal',
    test: '__tests__/unit/follow-ups.test.ts',
    changes: [['Attempts.doubt', 'this.#connection.disruptions !== disruptions', 'false']],
  },
  'forced-whoever-holds-it': {
    finding: 'a client repeats a forced unlock, which ends the lease of the next holder',
    simulation: ['spin'],
    changes: [
      [
        'common/force-unlock',
        "if string.gsub(string.gsub(holder, '^KEPT_PREFIX', ''), '@%d+$', '') ~= string.gsub(string.gsub(ARGV[1], '^KEPT_PREFIX', ''), '@%d+$', '') then return -1 end",
        '',
      ],
      // The mark of the first run would hold the second one up, too.
      ['common/return-if-forced', 'if toldBefore then return { 1, tonumber(toldBefore) } end', ''],
    ],
  },
  'script-runs-again': {
    finding: 'a client repeats a script of the application, which runs twice',
    simulation: ['spin'],
    changes: [
      [
        'RETURN_IF_RUN',
        "tonumber(number) < tonumber(least) or string.find(ran, ' ' .. number .. ' ', 1, true)",
        'false',
      ],
    ],
  },
} as const satisfies Record<string, Mutation>;

export type MutationName = keyof typeof MUTATIONS;

export const mutations: readonly (Mutation & { readonly name: MutationName })[] = Object.entries(MUTATIONS).map(
  ([name, mutation]) => ({ name: name as MutationName, ...mutation }),
);

export function mutationNamed(name: string): Mutation {
  const mutation = mutations.find((one) => one.name === name);
  if (mutation !== undefined) return mutation;
  throw new RangeError(`Unknown mutation "${name}": one of ${mutations.map((one) => one.name).join(', ')}`);
}

/** What is not in its place exactly once: so a change of the library cannot make a mutation right unnoticed. */
export function misplaced(): string[] {
  return mutations.flatMap(({ name, changes }) =>
    changes.flatMap((change) => {
      const [place, code] = change;
      const count = spotsOf(change).length;
      return count === 1 ? [] : [`${name}: in ${place} ${count} times, not once: ${code}`];
    }),
  );
}

interface Spot {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

function spotsOf([name, code, by]: Change): Spot[] {
  return placesNamed(name).flatMap(({ path, start, end }) =>
    findCode(code, readFileSync(path, 'utf8').slice(start, end)).map((found) => ({
      path,
      start: start + found.start,
      end: start + found.end,
      by,
    })),
  );
}

/** Puts mutations into the library while it is bundled. */
export function mutating(names: readonly string[]): Plugin {
  const spots = names.flatMap((name) => mutationNamed(name).changes.flatMap(spotsOf));
  // From the end, since each one moves what is behind it.
  spots.sort((a, b) => b.start - a.start);
  const mutated = (path: string, source: string): string =>
    spots
      .filter((spot) => spot.path === path)
      .reduce((text, { start, end, by }) => text.slice(0, start) + by + text.slice(end), source);
  return {
    name: 'mutations',
    setup: ({ onLoad }) => {
      onLoad({ filter: READS_LUA }, () => ({ contents: luaTable(mutated), loader: 'js' }));
      onLoad({ filter: /\.ts$/ }, ({ path }) =>
        spots.some((spot) => spot.path === path)
          ? { contents: mutated(path, readFileSync(path, 'utf8')), loader: 'ts' }
          : undefined,
      );
    },
  };
}
