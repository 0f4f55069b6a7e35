import { clock } from '../internal/clock';
import type { Receiver, ScriptRun, ScriptRunner } from './call';
import { isErrorLike, isFinal, isServerAnswer, serverErrorCode, UnexpectedReplyError } from './failure';
import type { KeyPlacement } from './key-placement';
import { LockScript, type Script } from './script';

/** At most this many calls go into one command: it occupies the server for a fraction of a millisecond. */
const LARGEST = 100;

/** Fewer calls than this go into one command, though nothing is on its way: a second one would cost more than it saves. */
const WORTH_HALVING = 32;

/** Calls back before the client writes to its socket. */
const SOON = Promise.resolve();

/** Errors about keys that cannot be used in one command, though each of them can. All but the first one pass. */
const SPLIT = new Set(['CROSSSLOT', 'TRYAGAIN', 'MOVED', 'ASK']);

/**
 * Calls of one script that are made at the same time, about several locks, go to Redis as one command: a command costs
 * client and server more than the work in it. "At the same time" is before the client writes to its socket, so no call
 * waits for another.
 *
 * Many calls go in two halves, the second one a tick of the event loop later. From then on the server works on one half
 * while the client works on the replies of the other: together, each would wait while the other one works.
 *
 * A script that acquires joins others only once it is proven that all keys are on one server (see `KeyPlacement`).
 * Scripts about locks that were taken before make that proof: a key that they miss is asked for again alone.
 */
export class Batches {
  readonly #runner: ScriptRunner;
  readonly #placement: KeyPlacement;
  /** Whether scripts that acquire may ever go together: only over a client that has one connection to one server. */
  readonly #mayAcquireTogether: boolean;
  /** Whether many calls go in halves: not where a command holds up the next one. */
  readonly #mayHalve: boolean;
  #waiting: ScriptRun[] = [];
  /** The second half, which goes a tick later. */
  #secondHalf: ScriptRun[][] = [];
  /** Commands about several locks that are not answered yet. */
  #inFlight = 0;
  /** Keys that were missed and are being asked for alone. */
  #missing = 0;

  constructor(runner: ScriptRunner, placement: KeyPlacement, mayAcquireTogether: boolean, mayHalve = true) {
    this.#runner = runner;
    this.#placement = placement;
    this.#mayAcquireTogether = mayAcquireTogether;
    this.#mayHalve = mayHalve;
  }

  /** Scripts that acquire would go together if it were proven that all keys are on one server. */
  get needsProof(): boolean {
    return this.#mayAcquireTogether && this.#placement.isOpen;
  }

  add(call: ScriptRun): void {
    if (this.#waiting.push(call) === 1) void SOON.then(this.#flush);
  }

  readonly #flush = (): void => {
    // Commands arrive in the order in which their calls were made.
    this.#sendSecondHalf();
    const calls = this.#waiting;
    this.#waiting = [];
    const [first] = calls;
    if (calls.length === 1 && first !== undefined) {
      this.#sendAlone(first);
      return;
    }
    const halves = this.#mayHalve && this.#isIdle && calls.length >= WORTH_HALVING;
    const groups = this.#groups(calls, halves ? Math.min(Math.ceil(calls.length / 2), LARGEST) : LARGEST);
    if (halves) this.#secondHalf = groups.splice(Math.ceil(groups.length / 2));
    this.#send(groups);
    // After the client has asked for a tick in which it writes the first half: it would write both together.
    if (this.#secondHalf.length > 0) void clock.immediate().then(() => this.#sendSecondHalf());
  };

  /**
   * No command about several locks is on its way. Before the proof nothing goes in halves: a half might have the keys
   * of one server only, and would prove what is not true.
   */
  get #isIdle(): boolean {
    return this.#inFlight === 0 && this.#placement.isProven;
  }

  #sendSecondHalf(): void {
    this.#send(this.#secondHalf.splice(0));
  }

  #send(groups: readonly ScriptRun[][]): void {
    for (const group of groups) {
      const script = group[0]?.script;
      if (group.length > 1 && script instanceof LockScript) this.#sendTogether(group, script);
      else for (const call of group) this.#sendAlone(call);
    }
  }

  /** Calls of one script that fit together, in the order in which the first call of each group was made. */
  #groups(calls: readonly ScriptRun[], largest: number): ScriptRun[][] {
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
      if (last !== undefined && last.length < largest && isLike(last[0], call)) {
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
    if (!(script instanceof LockScript)) return false;
    return script.found !== undefined || (this.#mayAcquireTogether && this.#placement.isProven);
  }

  #sendAlone(call: ScriptRun, receiver: Receiver = call): void {
    this.#runner.run(call.script, { keys: call.keys, arguments: call.args }, receiver);
  }

  #sendTogether(calls: ScriptRun[], script: LockScript): void {
    const receiver: Receiver = {
      get isOver() {
        return calls.every((call) => call.isOver);
      },
      // The calls are taken out of the array: node-redis refers to what it has sent for longer than it needs it.
      answer: (replies) => {
        this.#inFlight--;
        this.#settle(calls.splice(0), script, replies);
      },
      fail: (error) => {
        this.#inFlight--;
        this.#fail(calls.splice(0), error);
      },
    };
    this.#inFlight++;
    this.#runner.run(script.forMany, script.forMany.options(calls), receiver);
  }

  #settle(calls: readonly ScriptRun[], script: LockScript, replies: unknown): void {
    if (!Array.isArray(replies) || replies.length !== calls.length) {
      this.#fail(calls, new UnexpectedReplyError(script.forMany.name, replies));
      return;
    }
    const missing = this.#placement.isProven ? undefined : this.#examine(calls, script, replies);
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i] as ScriptRun;
      const reply: unknown = replies[i];
      if (isErrorLike(reply)) call.fail(reply);
      else if (missing?.includes(call)) this.#askAlone(call, script);
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

  /** Records which keys one command found. Returns calls, other than the first, whose key was not found. */
  #examine(calls: readonly ScriptRun[], script: LockScript, replies: readonly unknown[]): ScriptRun[] {
    const missing = calls.filter((_, i) => i > 0 && !isErrorLike(replies[i]) && !script.found?.(replies[i]));
    const first = replies[0];
    if (missing.length === 0 && this.#missing === 0 && !isErrorLike(first) && script.found?.(first)) {
      this.#placement.foundTogether(calls.flatMap(({ keys }) => keys));
    }
    return missing;
  }

  /** Asks again, alone, for a key that one command did not find and that was not its first one. */
  #askAlone(call: ScriptRun, script: LockScript): void {
    this.#missing++;
    const receiver: Receiver = {
      get isOver() {
        return call.isOver;
      },
      answer: (reply) => {
        this.#missing--;
        if (script.found?.(reply)) this.#placement.foundApart();
        call.answer(reply);
      },
      fail: (error) => {
        this.#missing--;
        this.#placement.doubt();
        call.fail(error);
      },
    };
    this.#sendAlone(call, receiver);
  }
}

/** They have the same number of keys and of arguments. */
function isLike(one: ScriptRun | undefined, other: ScriptRun): boolean {
  return one?.keys.length === other.keys.length && one.args.length === other.args.length;
}
