import { createHash } from 'node:crypto';
import type { EvalOptions } from './client';

/** KEYS and ARGV of one run: at least one key, by which a cluster knows the server. */
export type RunOptions = Readonly<Required<EvalOptions>>;

/** One run of a script, and what reads its reply. */
export interface Run<T> {
  readonly script: Script;
  readonly keys: string[];
  readonly args: string[];
  /** ms, from `now` on: when the clock was read last. */
  readonly timeout: number;
  readonly now: number;
  /** Makes the result of a reply, or throws what the run fails with. */
  readonly read: (reply: unknown) => T;
}

/** A Lua script, with the digest that EVALSHA identifies it by. */
export class Script {
  /** What it does, for error messages: `acquire (spring)`. */
  readonly name: string;
  /** May take a lock that was free until then, as far as is known. What is renewed, or adopted, was not. */
  readonly mayAcquire: boolean;
  /** For a script that grants a lock: whether its reply about one says so. Only this counts for `minReplicas`. */
  readonly grants: ((reply: unknown) => boolean) | undefined;
  #source: string | (() => string);
  #sha1: string | undefined;

  /** `source`: the text, or what makes it when it is first sent, since a process needs few of all scripts. */
  constructor(name: string, source: string | (() => string), mayAcquire = false, grants?: (reply: unknown) => boolean) {
    this.name = name;
    this.#source = source;
    this.mayAcquire = mayAcquire;
    this.grants = grants;
  }

  get source(): string {
    if (typeof this.#source === 'function') this.#source = this.#source();
    return this.#source;
  }

  get sha1(): string {
    this.#sha1 ??= createHash('sha1').update(this.source).digest('hex');
    return this.#sha1;
  }
}

/** A script about one lock. One command can run it for many locks. It is idempotent, and never returns nil. */
export class LockScript extends Script {
  #forMany: ScriptForMany | undefined;
  #allOrNone: ScriptForMany | undefined;

  /** Runs the script for each of several locks: see `ScriptForMany`. */
  get forMany(): ScriptForMany {
    this.#forMany ??= new ScriptForMany(this, false);
    return this.#forMany;
  }

  /** What `forMany` is, for a script that acquires where no lock is of use without the others. */
  get allOrNone(): ScriptForMany {
    this.#allOrNone ??= new ScriptForMany(this, true);
    return this.#allOrNone;
  }
}

/** The locks that are there are asked for in the first round, and the free ones in the second: where none was refused. */
const IN_TWO_ROUNDS = `local locks, there, isOneRefused = {}, nil, false
for i = 1, runs do locks[i] = KEYS[(i - 1) * keysOfEach + 1] end
if redis.call('EXISTS', unpack(locks)) > 0 then
  there = {}
  for i = 1, runs do there[i] = redis.call('EXISTS', locks[i]) == 1 end
end
for round = there and 1 or 2, 2 do for i = 1, runs do
if round == 2 and isOneRefused and not replies[i] then
  replies[i] = {}
elseif not there or there[i] == (round == 1) then`;

/** A table may grant a lock of type fair: by its third value, which begins with the first argument. */
const NOTE_REFUSAL = `
    local isRefused = type(reply) == 'table' and string.find(tostring(reply[3]), args[1], 1, true) ~= 1
    isOneRefused = isOneRefused or isRefused`;

/** A script for each of several locks. */
export class ScriptForMany extends Script {
  /**
   * KEYS: those of each run, one run after the other. Each run has the same number of keys.
   * ARGV: the number of runs; how many arguments each run has of its own, the first ones; the others, which are the same
   * for all; then those of each run.
   * Returns the reply of each run. An error of one run does not affect the others. Its reply is { 'error', text }: a
   * client of HTTP cannot read an error in a list. With `allOrNone`, the locks that are there come first. If one of them is
   * not granted, the free ones are left as they are, and their reply is empty. The others may be the caller's already, if
   * its client repeats the command.
   */
  constructor(one: LockScript, allOrNone: boolean) {
    super(
      `${one.name}, ${allOrNone ? 'all or none' : 'for many'}`,
      () => `
local function run(KEYS, ARGV)
${one.source}
end
local runs, own = tonumber(ARGV[1]), tonumber(ARGV[2])
local keysOfEach, shared = #KEYS / runs, #ARGV - runs * own
local keys, args, replies = {}, {}, {}
for i = 3, shared do args[own + i - 2] = ARGV[i] end
${allOrNone ? IN_TWO_ROUNDS : 'for i = 1, runs do'}
  for j = 1, keysOfEach do keys[j] = KEYS[(i - 1) * keysOfEach + j] end
  for j = 1, own do args[j] = ARGV[shared + (i - 1) * own + j] end
  local succeeded, reply = pcall(run, keys, args)
  -- Nearly every reply is 1: a look at it would cost as much as a command.
  if reply ~= 1 then
    -- Servers before 7 raise a text.
    local failure = type(reply) == 'table' and reply.err or not succeeded and reply
    if failure then reply = { 'error', failure } end${allOrNone ? NOTE_REFUSAL : ''}
  end
  replies[i] = reply
end${allOrNone ? ' end end' : ''}
return replies`,
      one.mayAcquire,
      one.grants,
    );
  }

  /** KEYS and ARGV for these runs, as above. */
  options(runs: readonly RunOptions[]): RunOptions {
    const { arguments: first } = runs[0] as RunOptions;
    let own = first.length;
    while (own > 0 && runs.every((run) => run.arguments[own - 1] === first[own - 1])) own--;
    const keys: string[] = [];
    const args = [String(runs.length), String(own)];
    for (let i = own; i < first.length; i++) args.push(first[i] as string);
    for (const run of runs) {
      for (const key of run.keys) keys.push(key);
      for (let i = 0; i < own; i++) args.push(run.arguments[i] as string);
    }
    return { keys, arguments: args };
  }
}
