import { FENCE_TTL } from '../spring/spring-scripts';

/* Parts of the scripts of the fair lock. See fair-scripts.ts for the keys. */

/** ms; a grant by hand-over lasts this long until it is renewed; never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** How a process learns of a grant: by a message, or it polls. `none`: the caller does not wait. */
export type NotifiedBy = 'message' | 'poll' | 'none';

/** Tickets are read in groups of this size. */
const GROUP = 50;

/** The keys by name. */
export const KEYS_BY_NAME = `
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]`;

/** The time and what every script needs. Inserted after the path without waiters: Lua creates functions at every run. */
export const FUNCTIONS = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

local function processOf(owner) return string.match(owner, '^(.*):') end

-- The next token: max(last + 1, server time), as for the other types. Empty without a fence.
local function mint()
  if not fence then return '' end
  local token = digits(math.max((tonumber(redis.call('GET', fence)) or 0) + 1, now))
  redis.call('SET', fence, token, 'PX', ${FENCE_TTL})
  return token
end

-- The token of the grant that holds the lock, or empty where its process minted none: processes without fencing do not.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return last and (not grantedAt or tonumber(last) >= tonumber(grantedAt)) and last or ''
end

local function forget(ticket)
  redis.call('ZREM', queue, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- A hash whose last field has gone has lost its expiry.
local function note(field, value)
  redis.call('HSET', tickets, field, value)
  if redis.call('PTTL', tickets) < 0 then redis.call('PEXPIRE', tickets, ${10 * CLAIM_WINDOW}) end
end

-- A script of this process runs: it is alive. Returns 1 when it had been passed over.
local function hear(process)
  local granted = redis.call('HGET', tickets, 'granted')
  if granted and processOf(granted) == process then redis.call('HDEL', tickets, 'granted') end
  return redis.call('HDEL', tickets, 'absent:' .. process)
end

-- PEXPIRE first: out of memory, Redis refuses SET to a script that has not written yet.
local function give(owner, life)
  redis.call('PEXPIRE', lock, life)
  redis.call('SET', lock, owner, 'PX', life)
end
`;

/**
 * Gives a lock that is free, or about to be, to the first ticket whose process can be reached. `asking` is the ticket of
 * the attempt that runs the script, if it waits: it gets its full ttl, since the attempt is followed up. Any other grant
 * lasts for the claim window. `mine` is the process that runs the script.
 *
 * Returns the owner and its token when the grant is to a ticket of `mine`, which learns it from the reply; true and the
 * token when it is another process'; nothing when there is no such ticket. `refused` is true afterwards when the server
 * refused to publish.
 */
export const HAND_OVER_FUNCTION = `
local refused = false

-- How many connections of the process were notified of a grant.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local heard = redis.pcall(ARGV[1], channel, message)
  if type(heard) == 'number' then return heard end
  refused = true
  return 0
end

local function handOver(mine, asking)
  -- A grant that is still noted when the lock is free ran out, or its holder died.
  local lapsed = redis.call('HGET', tickets, 'granted')
  redis.call('HDEL', tickets, 'granted')
  if lapsed and processOf(lapsed) ~= mine then note('absent:' .. processOf(lapsed), lapsed) end
  local skipped, kept, token = {}, 0, nil
  while true do
    local group = redis.call('ZRANGE', queue, kept, kept + ${GROUP - 1})
    if #group == 0 then return end
    for _, ticket in ipairs(group) do
      local process = processOf(ticket)
      if skipped[process] then
        kept = kept + 1
      else
        local ttl = redis.call('HGET', tickets, ticket)
        local life, how = string.match(redis.call('HGET', tickets, process) or '', '^(%d+):(%a+)$')
        if not ttl or not life or tonumber(life) * 1000 < now then
          -- Its process has not been heard of for long. If it lives, it enters the ticket again, with its first score.
          forget(ticket)
        elseif ticket == asking then
          forget(ticket)
          give(ticket, ttl)
          return ticket, mint()
        else
          local window = math.min(${CLAIM_WINDOW}, tonumber(ttl))
          local owner = ticket .. '@' .. digits(now)
          token = token or mint()
          local isReached = process == mine
          if not isReached and redis.call('HEXISTS', tickets, 'absent:' .. process) == 0 then
            -- A process that polls finds the grant by itself.
            isReached = how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0
          end
          if isReached then
            give(owner, window)
            forget(ticket)
            note('granted', owner)
            return process == mine and owner or true, token
          end
          -- It is dead, frozen or reconnecting: it is passed over and keeps its position.
          skipped[process] = true
          kept = kept + 1
        end
      end
    end
  end
end
`;

/** The queue lives at least as long as the process that runs the script is expected to be heard of again. */
export const PROLONG = (life: string) => `
for _, key in ipairs({ queue, tickets }) do
  if redis.call('PTTL', key) < tonumber(${life}) then redis.call('PEXPIRE', key, ${life}) end
end`;
