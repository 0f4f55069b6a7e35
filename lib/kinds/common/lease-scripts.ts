import type { EvalResult, ScriptRunner } from '../../core/backend';
import { inOneLine } from '../../internal/validation';
import { mayBeErrorReply } from '../../redis/failure';
import type { Redis } from '../../redis/redis';
import { Script } from '../../redis/script';

/** At most this many scripts are kept with their digest. */
const CAPACITY = 100;

/** ms in which Redis has to say what class of errors its answers are. */
const LEARNING = 2_000;

/*
 * A client may send a command again whose reply was lost. So each call has a number, and a mark beside the lock has
 * those that have run: "<least> <number> <number> ... ". Less than the least has run, or must not run any more: its
 * caller does not wait now. The numbers are few: those of calls that were made at the same time.
 *
 * The mark outlives the lease. A command that the client sends again after that may run again only if the lock is the
 * owner's by then: it was renewed over another connection, or taken anew by an attempt that was sent again too. A script that
 * cannot write needs no mark, and cannot leave one.
 */

/** ms for which a mark is kept at least. */
const MARK_KEPT = 60_000;

/** Returns if the call has run. All in Lua. */
const RETURN_IF_RUN = `
local least, ran = string.match(redis.call('GET', mark) or '0 ', '^(%d+)(.*)$')
if tonumber(number) < tonumber(least) or string.find(ran, ' ' .. number .. ' ', 1, true) then
  return { owner, 'ran' }
end`;

/** Marks the call as run. All in Lua. */
const LEAVE_MARK = `
ran = string.gsub(ran, '%d+ ', function(one) return tonumber(one) < tonumber(waiting) and '' or one end)
if ran == '' then ran = ' ' end
redis.call('SET', mark, waiting .. ran .. number .. ' ', 'PX', math.max(4 * redis.call('PTTL', lock), ${MARK_KEPT}))`;

/**
 * Runs scripts of the application's, each once, and only if the lock is still the owner's at that moment.
 *
 * The check stands before the script, in its first line, so that line numbers in errors are those of the script. It
 * takes its keys and its arguments off the ends of KEYS and ARGV, and leaves no variable behind. Nothing follows the
 * script: it may end with `return`, or with a comment. `held`: makes the Lua that examines the lock.
 */
export function leaseScripts(redis: Redis, held: () => string): ScriptRunner {
  const scripts = new Map<string, Script>();
  /** The numbers of the calls that are waited for, by owner. */
  const waitedFor = new Map<string, Set<number>>();
  let last = 0;

  const wrapped = (source: string): Script => {
    const known = scripts.get(source);
    if (known !== undefined) return known;
    // A first line "#!lua flags=..." stays the first one.
    const [shebang = ''] = /^#![^\n]*(\n|$)/.exec(source) ?? [];
    const mayWrite = !shebang.includes('no-writes');
    const check = `do local lock, mark = table.remove(KEYS), table.remove(KEYS)
local owner, number, waiting = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
local state ${mayWrite ? RETURN_IF_RUN : ''} ${held()}
if state then return { owner, state } end ${mayWrite ? LEAVE_MARK : ''} end `;
    const oneLine = check.replace(/\s*\n\s*/g, ' ');
    const script = new Script("the application's", `${shebang}${oneLine}${source.slice(shebang.length)}`);
    if (scripts.size >= CAPACITY) scripts.delete(scripts.keys().next().value as string);
    scripts.set(source, script);
    return script;
  };

  return {
    assertPlaced(names, { keys }) {
      const { lock } = names;
      names.companion('evals');
      const slot = redis.slotOf(lock);
      for (const [i, key] of keys.entries()) {
        const other = redis.slotOf(key);
        if (other === slot) continue;
        const expectation = `Expected \`keys[${i}]\` to be in slot ${slot} of the cluster, as the lock "${lock}" is`;
        const got = `got "${key}" in slot ${other}: a common hash tag, "{...}", puts them together`;
        throw new RangeError(inOneLine(`${expectation}, ${got}`));
      }
    },

    async run(names, owner, { script, keys, args }, timeout) {
      const read = (reply: unknown): EvalResult => {
        const state = Array.isArray(reply) && reply.length === 2 && reply[0] === owner ? reply[1] : undefined;
        if (state === 'ran') throw new Error('it has run, but its reply was lost, and the client sent it again');
        return state === 'expired' || state === 'stolen' ? { held: false, state } : { held: true, reply };
      };
      const number = ++last;
      const waiting = waitedFor.get(owner) ?? new Set();
      waitedFor.set(owner, waiting.add(number));
      const [least = number] = waiting;
      const allKeys = [...keys, `${names.companion('evals')}:${owner}`, names.lock];
      const allArgs = [...args, String(least), String(number), owner];
      try {
        return await redis.run(wrapped(script), allKeys, allArgs, timeout, read);
      } catch (error) {
        if (mayBeErrorReply(error)) await redis.learnErrorReplies(names.lock, Math.min(timeout, LEARNING));
        throw error;
      } finally {
        waiting.delete(number);
        if (waiting.size === 0) waitedFor.delete(owner);
      }
    },
  };
}
