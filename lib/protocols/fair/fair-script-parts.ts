import { isGrant } from '../format/replies';
import { mint } from '../format/script-parts';
import { LONGEST_PAUSE } from '../pollers';

/* Parts of the scripts of the fair lock. See fair-scripts.ts for the keys. */

/** ms; a grant by hand-over lasts this long until it is renewed; never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** In place of an owner: the holder may be of another lock type, or of a library that publishes no releases. */
export const OUTSIDER = 'outsider';

/** Whether the reply of an attempt says that the lock was granted to a ticket of the process. */
export function isGrantIn(reply: unknown): boolean {
  const owner: unknown = Array.isArray(reply) ? reply[0] : undefined;
  return isGrant(reply) || (typeof owner === 'string' && owner !== '' && owner !== OUTSIDER);
}

/** A message to the process that holds the lock: another process waits for it. */
export const WANTED = 'wanted';

/** How a process learns of a grant: by a message, or it polls. `none`: the caller does not wait. */
export type NotifiedBy = 'message' | 'poll' | 'none';

/** Tickets are read in groups of this size. */
const GROUP = 50;

/** The keys by name. */
export const KEYS_BY_NAME = `
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]`;

/** Changes nothing. At maxmemory a script may write more only if it has written before. */
export const WRITE_NOTHING = "redis.call('ZREM', queue, '')";

/** The time; `now` in microseconds. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`;

/**
 * What every script needs. Needs `now`. Inserted after the paths on which nobody else is to be granted the lock: Lua
 * creates functions at every run.
 */
export const FUNCTIONS = `
-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

local function processOf(owner) return string.match(owner, '^(.*):') end

-- Empty without a fence.
local function mint()
  if not fence then return '' end
  ${WRITE_NOTHING}
  local last = redis.call('GET', fence)
  ${mint('fence')}
end

-- The token of the grant that holds the lock. Empty where the process that granted it has no fencing.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return last and (not grantedAt or tonumber(last) >= tonumber(grantedAt)) and last or ''
end

local function forget(ticket)
  redis.call('ZREM', queue, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- When the last pause ends or ended. One that is too far ahead was written before the clock was set back.
local function pauseEnd()
  local at = tonumber(redis.call('HGET', tickets, 'pause'))
  return at and at - now <= ${1000 * LONGEST_PAUSE} and at
end

-- ms for which a free lock is left to pollers.
local function pauseLeft()
  return math.max(0, math.ceil(((pauseEnd() or 0) - now) / 1000))
end

-- ms until another attempt is worth it: until the lock's key ends, or until a free lock may be handed over.
local function lifeLeft()
  local life = redis.call('PTTL', lock)
  return life == -2 and pauseLeft() or life
end
`;

/**
 * What a script says of a holder to another process: OUTSIDER, unless its owner value is that of a grant from the queue,
 * or its process has had a ticket there lately.
 */
export const OUTSIDER_FUNCTION = `
local function outsider(holder, process)
  if not holder or string.find(holder, '@', 1, true) then return '' end
  local its = processOf(holder)
  local isKnown = its and (its == process or redis.call('HGET', tickets, its))
  return isKnown and '' or '${OUTSIDER}'
end
`;

/**
 * Keeps the queue at least until the process that runs the script would be taken for dead, and `tickets` as long as the
 * queue. `isNew`: `tickets` may have no expiry yet. In Lua.
 */
export const prolongQueue = (isNew: string) => `
if ${isNew} or redis.call('PTTL', queue) < tonumber(life) then
  -- A second longer, so that not every script has to write it.
  for _, key in ipairs({ queue, tickets }) do redis.call('PEXPIRE', key, life + 1000) end
end`;

/**
 * Gives a lock that is free, or about to be, to the first ticket whose process can be reached. Needs `publish`: PUBLISH
 * or SPUBLISH. `mine`: the process that runs the script. `asking`: the ticket that the script was sent for, if its
 * caller waits. A grant to `asking` gets the full ttl: the process learns of it from the reply, and follows it up if
 * the reply is lost. If the process dies first, this counts as a holder that died. Every other grant lasts for the
 * claim window.
 *
 * `first`: the first ticket in the queue, where the script has read it.
 *
 * Returns nothing if there is no such ticket; otherwise the owner, or true if the ticket is another process', the token,
 * and the ms for which it was granted. `refused` is true afterwards if the server refused to publish.
 *
 * The ticket is taken out of the queue before SET, so that a server at maxmemory allows it: see WRITE_NOTHING.
 */
export const HAND_OVER_FUNCTION = `
local refused = false

-- Sends a message to a process. Returns how many connections got it.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local heard = redis.pcall(publish, channel, message)
  if type(heard) == 'number' then return heard end
  refused = true
  return 0
end

local function handOver(mine, asking, first)
  local skipped, kept, token, size = {}, 0, nil, 1
  local group = first and { first }
  while true do
    -- The first read is of one ticket: as a rule that one gets the lock.
    group = group or redis.call('ZRANGE', queue, kept, kept + size - 1)
    size = ${GROUP}
    if #group == 0 then return end
    for _, ticket in ipairs(group) do
      local process = processOf(ticket)
      if skipped[process] then
        kept = kept + 1
      else
        local ttl, presence = unpack(redis.call('HMGET', tickets, ticket, process))
        local life, how = string.match(presence or '', '^(%d+):(%a+)$')
        if not ttl or not life or tonumber(life) * 1000 < now then
          -- Its process counts as dead. If it is alive, it enters the ticket again, with its first score.
          forget(ticket)
        elseif ticket == asking then
          forget(ticket)
          redis.call('SET', lock, ticket, 'PX', ttl)
          return ticket, mint(), tonumber(ttl)
        else
          local window = math.min(${CLAIM_WINDOW}, tonumber(ttl))
          local owner = ticket .. '@' .. digits(now)
          token = token or mint()
          -- A process that polls finds the grant by itself.
          if process == mine or how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0 then
            forget(ticket)
            redis.call('SET', lock, owner, 'PX', window)
            return process == mine and owner or true, token, window
          end
          -- It is dead or reconnecting: it is passed over and keeps its position.
          skipped[process] = true
          kept = kept + 1
        end
      end
    end
    group = nil
  end
end
`;

/** ms; a score that is further ahead of the server's clock shows that the clock was set back. */
const SET_BACK = 1_000;

/**
 * Sets `score`, a number: the position of a caller, by the time of its call. It may have waited in its process before,
 * behind other callers. `age`: microseconds since the call.
 */
export const SCORE = `
local last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
-- After a clock that was set back, calls cannot be compared: it goes to the end.
score = last > now + ${1000 * SET_BACK} and last + 1 or now - age`;

/**
 * Enters a ticket that is not in the queue. `score`: its position, as text. `how`, `life`: as for ACQUIRE. A server
 * at maxmemory allows it only to a script that has written: see WRITE_NOTHING.
 */
export const ENQUEUE_FUNCTION = `
local function enqueue(ticket, ttl, score, how, life)
  redis.call('ZADD', queue, score, ticket)
  local added = redis.call(
    'HSET', tickets, ticket, ttl, processOf(ticket), digits(now / 1000 + tonumber(life)) .. ':' .. how
  )
  -- Both fields are new: so may be the hash.
  ${prolongQueue('added == 2')}
end
`;
