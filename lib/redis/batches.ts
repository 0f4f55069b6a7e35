import { type Call, evaluate } from './call';
import type { RedisCommands } from './client';
import { isErrorLike, isFinal, isServerAnswer, serverErrorCode } from './failure';
import { hashTag } from './names';
import { LockScript, type Script } from './script';

/** So many calls go into one script at most: it holds up the server for a fraction of a millisecond. */
const LARGEST = 100;

/** So many keys, of different slots, are proof enough that all keys are on one server. */
const PROOF = 20;

/**
 * Calls that are made at the same time, about as many locks, go to Redis as one: a command costs client and server
 * more than the work in it. "At the same time" is before the client would write to its socket, so nobody waits for it.
 *
 * Only a server that has all keys can run such a script, and a proxy that shards keys over several servers need not
 * tell: it may look at the first key only. So the first calls that go together are releases of locks that were each
 * taken by a call of its own. As long as every one is found, they were on the same server; one that is not found is
 * asked for again alone, and when it is there, calls go together no more.
 */
export class Batches {
  readonly #commands: RedisCommands;
  #waiting: Call[] = [];
  #isSharded = false;
  /** Slots that were shown to be on one server; `undefined`: enough of them. */
  #shown: Set<string> | undefined = new Set();

  constructor(commands: RedisCommands) {
    this.#commands = commands;
  }

  add(call: Call): void {
    if (this.#waiting.push(call) === 1) void Promise.resolve().then(() => this.#flush());
  }

  #flush(): void {
    const calls = this.#waiting;
    this.#waiting = [];
    if (calls.length === 1) for (const call of calls) this.#sendAlone(call);
    else for (const group of this.#groups(calls)) this.#send(group);
  }

  /** Those of one script that fit together, in the order in which the first of each group was made. */
  #groups(calls: readonly Call[]): Call[][] {
    const groups: Call[][] = [];
    const open = new Map<Script, Call[]>();
    for (const call of calls) {
      const group = open.get(call.script);
      if (group !== undefined && group.length < LARGEST && isLike(group[0], call)) {
        group.push(call);
        continue;
      }
      const next = [call];
      groups.push(next);
      if (this.#mayGoTogether(call.script)) open.set(call.script, next);
    }
    return groups;
  }

  #mayGoTogether(script: Script): boolean {
    if (this.#isSharded || !(script instanceof LockScript)) return false;
    return this.#shown === undefined || script.found !== undefined;
  }

  #send(calls: Call[]): void {
    const [first] = calls;
    if (calls.length > 1 && first?.script instanceof LockScript) this.#sendTogether(calls, first.script);
    else for (const call of calls) this.#sendAlone(call);
  }

  #sendAlone(call: Call): void {
    evaluate(this.#commands, call.script, { keys: call.keys, arguments: call.args }, call);
  }

  #sendTogether(calls: Call[], script: LockScript): void {
    const keys: string[] = [];
    const args = [String(calls.length)];
    for (const call of calls) {
      keys.push(...call.keys);
      args.push(...call.args);
    }
    evaluate(
      this.#commands,
      script.forMany,
      { keys, arguments: args },
      {
        get isOver() {
          return calls.every((call) => call.isOver);
        },
        answer: (replies) => {
          calls.splice(0).forEach((call, i) => {
            this.#settle(call, script, (replies as unknown[])[i], i > 0);
          });
        },
        fail: (error) => {
          if (serverErrorCode(error) === 'CROSSSLOT') this.#isSharded = true;
          // One of them may be what the server refuses all of them for.
          const refused = isServerAnswer(error) && isFinal(error);
          for (const call of calls) {
            if (refused && !call.isOver) this.#sendAlone(call);
            else call.fail(error);
          }
        },
      },
    );
  }

  /** `isBehind`: another key decided on the server that ran the script. */
  #settle(call: Call, script: LockScript, reply: unknown, isBehind: boolean): void {
    if (isErrorLike(reply)) {
      call.fail(reply);
    } else if (this.#shown === undefined) {
      call.answer(reply);
    } else if (script.found?.(reply)) {
      if (isBehind) for (const key of call.keys) this.#shown.add(hashTag(key) ?? key);
      if (this.#shown.size >= PROOF) this.#shown = undefined;
      call.answer(reply);
    } else {
      this.#lookFor(call, script);
    }
  }

  /** It was not found where others were. */
  #lookFor(call: Call, script: LockScript): void {
    evaluate(
      this.#commands,
      script,
      { keys: call.keys, arguments: call.args },
      {
        get isOver() {
          return call.isOver;
        },
        answer: (reply) => {
          if (script.found?.(reply)) this.#isSharded = true;
          call.answer(reply);
        },
        fail: (error) => call.fail(error),
      },
    );
  }
}

/** As many keys, and as many arguments. */
function isLike(one: Call | undefined, other: Call): boolean {
  return one?.keys.length === other.keys.length && one.args.length === other.args.length;
}
