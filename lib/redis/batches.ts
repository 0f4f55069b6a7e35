import { type Call, evaluate, type Receiver } from './call';
import type { RedisCommands } from './client';
import { isErrorLike, isFinal, isServerAnswer, serverErrorCode } from './failure';
import { hashTag } from './names';
import { LockScript, type Script } from './script';

/** So many calls go into one script at most: it holds up the server for a fraction of a millisecond. */
const LARGEST = 100;

/** So many slots, each found beside another one, are proof enough that all keys are on one server. */
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
  /** Calls that were not found, and are asked for again. */
  #missing = 0;

  constructor(commands: RedisCommands) {
    this.#commands = commands;
  }

  add(call: Call): void {
    if (this.#waiting.push(call) === 1) void Promise.resolve().then(() => this.#flush());
  }

  #flush(): void {
    const calls = this.#waiting;
    this.#waiting = [];
    for (const group of calls.length === 1 ? [calls] : this.#groups(calls)) {
      const script = group[0]?.script;
      if (group.length > 1 && script instanceof LockScript) this.#sendTogether(group, script);
      else for (const call of group) this.#sendAlone(call);
    }
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

  #sendAlone(call: Call, receiver: Receiver = call): void {
    evaluate(this.#commands, call.script, { keys: call.keys, arguments: call.args }, receiver);
  }

  #sendTogether(calls: Call[], script: LockScript): void {
    const keys: string[] = [];
    const args = [String(calls.length)];
    for (const call of calls) {
      keys.push(...call.keys);
      args.push(...call.args);
    }
    const receiver: Receiver = {
      get isOver() {
        return calls.every((call) => call.isOver);
      },
      // The calls are taken out: node-redis' queue refers to what it has sent for longer than it needs it.
      answer: (replies) => this.#settle(calls.splice(0), script, replies),
      fail: (error) => this.#fail(calls.splice(0), error),
    };
    evaluate(this.#commands, script.forMany, { keys, arguments: args }, receiver);
  }

  #settle(calls: readonly Call[], script: LockScript, replies: unknown): void {
    if (!Array.isArray(replies) || replies.length !== calls.length) {
      this.#fail(calls, new Error('The reply is that of another command'));
      return;
    }
    const missing = this.#shown === undefined ? [] : this.#examine(this.#shown, calls, script, replies);
    calls.forEach((call, i) => {
      const reply = replies[i];
      if (isErrorLike(reply)) call.fail(reply);
      else if (missing.includes(call)) this.#lookFor(call, script);
      else call.answer(reply);
    });
  }

  #fail(calls: readonly Call[], error: unknown): void {
    if (serverErrorCode(error) === 'CROSSSLOT') this.#isSharded = true;
    // It may be for one of them that the server refuses all.
    const isRefusal = isServerAnswer(error) && isFinal(error);
    for (const call of calls) {
      if (isRefusal && !call.isOver) this.#sendAlone(call);
      else call.fail(error);
    }
  }

  /** Takes note of what was found, unless something was not found, and returns that. */
  #examine(shown: Set<string>, calls: readonly Call[], script: LockScript, replies: readonly unknown[]): Call[] {
    const missing = calls.filter((_, i) => !isErrorLike(replies[i]) && !script.found?.(replies[i]));
    if (missing.length === 0) {
      const slots = calls.flatMap(({ keys }) => keys.map((key) => hashTag(key) ?? key));
      // The first key decided on the server: that it was found there, or another of its slot, shows nothing.
      for (const slot of slots) if (slot !== slots[0]) shown.add(slot);
    }
    if (shown.size >= PROOF && this.#missing === 0) this.#shown = undefined;
    return missing;
  }

  /** Asks for one again that was not found where others were. */
  #lookFor(call: Call, script: LockScript): void {
    this.#missing++;
    const receiver: Receiver = {
      get isOver() {
        return call.isOver;
      },
      answer: (reply) => {
        this.#missing--;
        if (script.found?.(reply)) this.#isSharded = true;
        call.answer(reply);
      },
      fail: (error) => {
        this.#missing--;
        this.#shown?.clear();
        call.fail(error);
      },
    };
    this.#sendAlone(call, receiver);
  }
}

/** As many keys, and as many arguments. */
function isLike(one: Call | undefined, other: Call): boolean {
  return one?.keys.length === other.keys.length && one.args.length === other.args.length;
}
