import type { HeldCall, HeldResult, ScriptRunner } from '../lock-backend';
import type { LockNames } from '../redis/names';
import type { Redis } from '../redis/redis';
import { Script } from '../redis/script';
import { ifForced } from './inspection/forced-unlock';

/** At most this many scripts are kept with their digest. */
const CAPACITY = 100;

/**
 * For a lock that is not there: a replica may be behind, and says nothing. READONLY is the script's reply then.
 * `write`: a command that writes, and changes nothing. `ifForced`: Lua that runs its second argument after a forced
 * unlock.
 */
export const examineGone = (write: string, ifForced: (owner: string, then: string, lock: string) => string) => `
local written = redis.pcall(${write})
if type(written) == 'table' and string.find(written.err, 'READONLY', 1, true) then return written end
state = 'expired'
${ifForced('owner', "state = 'stolen'", 'lock')}`;

/** The same for a lock whose key is not there at all. */
export const EXAMINE_GONE = examineGone("'PEXPIRE', lock, 1", ifForced);

/** Another error than that of a key of another type, which is another owner's, is the script's reply. */
export const EXAMINE_ERROR = `
if not string.find(found.err, 'WRONGTYPE', 1, true) then return found end
state = 'stolen'`;

/** Whether a string key is the owner's. In Lua: sets `state`, nil when it is. */
export const STRING_HELD = `
local found = redis.pcall('GET', lock)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif not found then ${EXAMINE_GONE}
elseif found ~= owner then state = 'stolen' end`;

/**
 * Runs scripts of the application's, each only if the lock is still the owner's at that moment.
 *
 * The check stands before the script, in its first line, so that line numbers in errors are those of the script. It
 * takes its key and its argument off the ends of KEYS and ARGV, and leaves no variable behind. Nothing follows the
 * script: it may end with `return`, or with a comment.
 */
export class HeldScripts implements ScriptRunner {
  readonly #redis: Redis;
  readonly #check: string;
  readonly #scripts = new Map<string, Script>();

  /** `held`: Lua that examines the lock. */
  constructor(redis: Redis, held: string) {
    this.#redis = redis;
    const check = `do local lock, owner, state = table.remove(KEYS), table.remove(ARGV) ${held}
if state then return { owner, state } end end `;
    this.#check = check.replace(/\s*\n\s*/g, ' ');
  }

  assertPlaced({ lock }: LockNames, { keys }: HeldCall): void {
    const slot = this.#redis.slotOf(lock);
    keys.forEach((key, i) => {
      const other = this.#redis.slotOf(key);
      if (other === slot) return;
      const expectation = `Expected \`keys[${i}]\` to be in slot ${slot} of the cluster, as the lock "${lock}" is`;
      throw new RangeError(
        `${expectation}, got "${key}" in slot ${other}: a common hash tag, "{...}", puts them together`,
      );
    });
  }

  run(names: LockNames, owner: string, { script, keys, args }: HeldCall, timeout: number): Promise<HeldResult> {
    const read = (reply: unknown): HeldResult => {
      const state = Array.isArray(reply) && reply.length === 2 && reply[0] === owner ? reply[1] : undefined;
      return state === 'expired' || state === 'stolen' ? { held: false, state } : { held: true, reply };
    };
    return this.#redis.run(this.#wrapped(script), [...keys, names.lock], [...args, owner], timeout, read);
  }

  #wrapped(source: string): Script {
    const known = this.#scripts.get(source);
    if (known !== undefined) return known;
    // A first line "#!lua flags=..." stays the first one.
    const [shebang = ''] = /^#![^\n]*(\n|$)/.exec(source) ?? [];
    const script = new Script("the application's", `${shebang}${this.#check}${source.slice(shebang.length)}`);
    if (this.#scripts.size >= CAPACITY) this.#scripts.delete(this.#scripts.keys().next().value as string);
    this.#scripts.set(source, script);
    return script;
  }
}
