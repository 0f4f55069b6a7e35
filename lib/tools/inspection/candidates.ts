import { lua } from '../../internal/lua';
import { LOOKS } from '../../kinds/looks';
import { serverErrorCode } from '../../redis/failure';
import { Script } from '../../redis/script';
import { IN_LUA } from '../../redis/server-errors';
import type { Asked } from './servers';

const looks = Object.values(LOOKS);
const queues = looks.flatMap(({ queue }) => queue ?? []);
/** What keys of locks, and of queues, may be. */
const TYPES = [...new Set([...looks, ...queues].map(({ keyType }) => keyType))];
const OTHER_TYPES = ['string', 'hash', 'zset', 'list', 'set', 'stream'].filter((type) => !TYPES.includes(type));

/** Keys that may be of locks. */
interface Candidates {
  /** How many keys were looked at for them. */
  readonly looked: number;
  readonly keys: readonly (readonly [name: string, type: string])[];
  /** Why some keys were not looked at. */
  readonly refused?: string | undefined;
}

/** What is looked for. */
interface Sought {
  /** A glob for the names of locks. */
  readonly pattern: string;
  /** Every string whose name begins with it may be a lock, whatever its value is. '': none. */
  readonly prefix: string;
  /** One lock is sought: what else has its name is in its way. */
  readonly isOne?: boolean;
}

/** How many keys SCAN looks at in a step; and where all of them are read: for some 2 ms the server does nothing else. */
const STEP = '1000';
export const STEP_OF_ALL = '500';

/** In Lua: for a type of key, whether the one called `name` may be a lock, by the looks of the kinds that have such keys. */
const MAY_BE_LOCK = TYPES.map((type) => {
  const bodies = looks.filter(({ keyType }) => keyType === type).map(({ mayBeLock }) => mayBeLock);
  const body =
    bodies.length < 2 ? bodies[0] : `return ${bodies.map((one) => `(function() ${one} end)()`).join(' or ')}`;
  return `  ${type} = function(name)\n    ${body ?? 'return false'}\n  end,`;
}).join('\n');

/**
 * A step of SCAN, and which of its keys may be of a lock. It only reads. The server that executes it has its keys, so it
 * has no KEYS, and a node of a cluster executes it too. Some servers refuse that, when a key is read: Dragonfly, and
 * Kvrocks with a setting.
 *
 * ARGV: cursor, glob, how many keys a step looks at, `prefix` as in `Sought`, 1: only queues of locks are sought, and 1:
 * every key is a candidate.
 * Returns the next cursor, how many keys were looked at, the error for those that the user may not read or '', and name
 * and type of each candidate.
 */
export const CANDIDATES = new Script(
  'find locks',
  `
local prefix, onlyQueues, takesAll = ARGV[4], ARGV[5] == '1', ARGV[6] == '1'
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local reply = { page[1], 0, '' }
local ours = '[:/]' .. string.rep('[%w_-]', 22) .. ':%d'
local uuid = '^%x+%-%x+%-%x+%-%x+%-%x+'
-- An owner value of this library, or one with this form.
local function isOwner(value, form) return string.find(value, ours) or string.find(value, form) end
local refused
local noPermission = { '${IN_LUA.noRight.join("', '")}' }
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  for _, text in ipairs(noPermission) do
    local at = string.find(answer.err, text, 1, true)
    if at then
      reply[3] = string.sub(answer.err, at)
      return nil
    end
  end
  refused = answer
  return nil
end
local mayBeLock = {
${MAY_BE_LOCK}
}
local function isQueue(name)
  return ${queues.map(({ pattern }) => `string.find(name, '${pattern}')`).join(' or ')}
end
-- The name of a lock is text.
local function isText(name)
  if not string.find(name, '[\\128-\\255]') then return true end
${lua('common/without-text', { TEXT_VALUE: 'name' })}
  return not string.find(rest, '[\\128-\\255]')
end
for _, name in ipairs(page[2]) do
  local queues = isQueue(name)
  if queues or not onlyQueues then
    reply[2] = reply[2] + 1
    local kind = isText(name) and (ask('TYPE', name) or {}).ok
    local look = mayBeLock[kind]
    if kind and (takesAll or look and (queues or look(name))) then
      reply[#reply + 1] = name
      reply[#reply + 1] = kind
    end
  end
end
return refused or reply`,
);

/** By one script for each step, which finds them on the server; or where that is refused, by SCAN alone. */
export async function* candidates(
  server: Asked,
  { pattern, prefix, isOne = false }: Sought,
): AsyncGenerator<Candidates, void, undefined> {
  // The name of a queue has that of its lock in it.
  const isAll = /^\*+$/.test(pattern);
  const passes = isAll ? [['*']] : [[pattern], [`*${pattern}*`, '1']];
  let isRefused = true;
  for (const [glob = '', onlyQueues = ''] of passes) {
    let cursor = '0';
    do {
      let reply: unknown[];
      try {
        const args = [cursor, glob, isAll ? STEP_OF_ALL : STEP, prefix, onlyQueues, ...(isOne ? ['1'] : [])];
        reply = (await server.send('EVAL', CANDIDATES.source, '0', ...args)) as unknown[];
        // A step without keys read none.
        if (Number(reply[1]) > 0) isRefused = false;
      } catch (error) {
        // The user may not run scripts, or not here: a server that shards wants to know the keys of a script.
        if (!isRefused || serverErrorCode(error) === undefined) throw error;
        yield* scanned(server, pattern, isOne);
        return;
      }
      const [next = '0', looked, refused, ...found] = reply.map(String);
      const keys = found.flatMap((name, i) => (i % 2 === 0 ? [[name, found[i + 1] ?? ''] as const] : []));
      yield { looked: Number(looked), keys, refused: refused || undefined };
      cursor = next;
    } while (cursor !== '0');
  }
}

async function* scanned(server: Asked, pattern: string, isOne: boolean): AsyncGenerator<Candidates, void, undefined> {
  for (const type of isOne ? [...TYPES, ...OTHER_TYPES] : TYPES) {
    const all = type === 'string' ? pattern : `*${pattern}*`;
    let cursor = '0';
    do {
      const page = await server.send('SCAN', cursor, 'MATCH', all, 'COUNT', STEP, 'TYPE', type);
      const [next, names] = page as [unknown, unknown[]];
      yield { looked: names.length, keys: names.map((name) => [String(name), type]) };
      cursor = String(next);
    } while (cursor !== '0');
  }
}
