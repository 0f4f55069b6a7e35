import type { Receiver, ScriptRun, ScriptRunner } from './call';
import { isErrorLike, isFinal, isServerAnswer, serverErrorCode, UnexpectedReplyError } from './failure';
import type { KeyPlacement } from './key-placement';
import { LockScript, type Script } from './script';

/** At most this many calls go into one command: it occupies the server for a fraction of a millisecond. */
const LARGEST = 100;

/** Calls back before the client writes to its socket. */
const SOON = Promise.resolve();

/** Errors about keys that cannot be used in one command, though each of them can. All but the first one pass. */
const SPLIT = new Set(['CROSSSLOT', 'TRYAGAIN', 'MOVED', 'ASK']);

/**
 * Calls of one script that are made at the same time, about several locks, go to Redis as one command: a command costs
 * client and server more than the work in it. "At the same time" is before the client writes to its socket, so no call
 * waits for another. Only those that acquire wait once, for the first answer to where the keys are.
 */
export class Batches {
  readonly #runner: ScriptRunner;
  readonly #placement: KeyPlacement;
  /** Whether scripts that acquire may go together: over a client with one connection to one server, and on a cluster. */
  readonly #mayAcquireTogether: boolean;
  #waiting: ScriptRun[] = [];

  constructor(runner: ScriptRunner, placement: KeyPlacement, mayAcquireTogether: boolean) {
    this.#runner = runner;
    this.#placement = placement;
    this.#mayAcquireTogether = mayAcquireTogether;
  }

  add(call: ScriptRun): void {
    if (this.#waiting.push(call) === 1) void SOON.then(this.#flush);
  }

  readonly #flush = (): void => {
    const calls = this.#waiting;
    this.#waiting = [];
    const [first] = calls;
    if (calls.length === 1 && first !== undefined) {
      this.#sendAlone(first);
      return;
    }
    const answer = this.#placement.made(calls.length);
    if (answer === undefined || !this.#mayAcquireTogether) {
      this.#send(calls);
      return;
    }
    this.#send(calls.filter(({ script }) => !mayAcquire(script)));
    // Nobody waits any more for some of them: what they acquire would be nobody's.
    void answer.then(() => this.#send(calls.filter(({ script, isOver }) => mayAcquire(script) && !isOver)));
  };

  #send(calls: readonly ScriptRun[]): void {
    for (const group of this.#groups(calls)) {
      const script = group[0]?.script;
      if (group.length > 1 && script instanceof LockScript) this.#sendTogether(group, script);
      else for (const call of group) this.#sendAlone(call);
    }
  }

  /** Calls of one script that fit together, in the order in which the first call of each group was made. */
  #groups(calls: readonly ScriptRun[]): ScriptRun[][] {
    const groups: ScriptRun[][] = [];
    const open = new Map<Script, Map<string, ScriptRun[]>>();
    let last: ScriptRun[] | undefined;
    let lastSlot: string | undefined;
    for (const call of calls) {
      const slot = this.#mayGoTogether(call.script) ? this.#placement.groupOf(call.keys[0] ?? '') : undefined;
      if (slot === undefined) {
        groups.push([call]);
        continue;
      }
      // Nearly always it is like the call before it.
      if (last?.[0]?.script !== call.script || lastSlot !== slot) last = open.get(call.script)?.get(slot);
      lastSlot = slot;
      if (last !== undefined && last.length < LARGEST && isLike(last[0], call)) {
        last.push(call);
        continue;
      }
      last = [call];
      groups.push(last);
      const ofScript = open.get(call.script) ?? new Map<string, ScriptRun[]>();
      open.set(call.script, ofScript);
      ofScript.set(slot, last);
    }
    return groups;
  }

  #mayGoTogether(script: Script): boolean {
    return script instanceof LockScript && (!mayAcquire(script) || this.#mayAcquireTogether);
  }

  #sendAlone(call: ScriptRun): void {
    call.isSent = true;
    this.#runner.run(call.script, { keys: call.keys, arguments: call.args }, call);
  }

  #sendTogether(calls: ScriptRun[], script: LockScript): void {
    for (const call of calls) call.isSent = true;
    const receiver: Receiver = {
      get isOver() {
        return calls.every((call) => call.isOver);
      },
      // The calls are taken out of the array: node-redis refers to what it has sent for longer than it needs it.
      answer: (replies) => this.#settle(calls.splice(0), script, replies),
      fail: (error) => this.#fail(calls.splice(0), error),
    };
    this.#runner.run(script.forMany, script.forMany.options(calls), receiver);
  }

  #settle(calls: readonly ScriptRun[], script: LockScript, replies: unknown): void {
    if (!Array.isArray(replies) || replies.length !== calls.length) {
      this.#fail(calls, new UnexpectedReplyError(script.forMany.name, replies));
      return;
    }
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i] as ScriptRun;
      const reply: unknown = replies[i];
      if (isErrorLike(reply)) call.fail(reply);
      else call.answer(reply);
    }
  }

  #fail(calls: readonly ScriptRun[], error: unknown): void {
    const code = serverErrorCode(error);
    if (code === 'CROSSSLOT') this.#placement.crossSlot();
    // The server may refuse all of them because of one.
    const tryAlone = code !== undefined && (SPLIT.has(code) || (isServerAnswer(error) && isFinal(error)));
    for (const call of calls) {
      if (tryAlone && !call.isOver) this.#sendAlone(call);
      else call.fail(error);
    }
  }
}

/** A script about one lock that was not taken before, as far as is known. */
function mayAcquire(script: Script): boolean {
  return script instanceof LockScript && script.found === undefined;
}

/** They have the same number of keys and of arguments. */
function isLike(one: ScriptRun | undefined, other: ScriptRun): boolean {
  return one?.keys.length === other.keys.length && one.args.length === other.args.length;
}
