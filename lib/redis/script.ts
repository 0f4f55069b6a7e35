import { createHash } from 'node:crypto';

/** A Lua script, with the name that EVALSHA knows it by. */
export class Script {
  readonly source: string;
  readonly sha1: string;

  constructor(source: string) {
    this.source = source;
    this.sha1 = createHash('sha1').update(source).digest('hex');
  }
}

/**
 * A script about one lock, which can be run for many locks in one call. It returns something other than nil, and bears
 * being executed twice.
 */
export class LockScript extends Script {
  /** Of a script that gives back: whether its reply says that the lock was found, where it had been taken. */
  readonly found: ((reply: unknown) => boolean) | undefined;
  #forMany: Script | undefined;

  constructor(source: string, found?: (reply: unknown) => boolean) {
    super(source);
    this.found = found;
  }

  /**
   * KEYS and ARGV of each run, one after the other, as many for each; before them ARGV has the number of runs. Returns
   * the reply of each; what went wrong in one is its reply, and harms no other.
   */
  get forMany(): Script {
    this.#forMany ??= new Script(`
local function run(KEYS, ARGV)
${this.source}
end
local runs = tonumber(ARGV[1])
local keysOfEach, argsOfEach = #KEYS / runs, (#ARGV - 1) / runs
local keys, args, replies = {}, {}, {}
for i = 1, runs do
  for j = 1, keysOfEach do keys[j] = KEYS[(i - 1) * keysOfEach + j] end
  for j = 1, argsOfEach do args[j] = ARGV[(i - 1) * argsOfEach + j + 1] end
  local succeeded, reply = pcall(run, keys, args)
  -- Servers before 7 raise a text.
  if not succeeded and type(reply) ~= 'table' then reply = { err = reply } end
  replies[i] = reply
end
return replies`);
    return this.#forMany;
  }
}
