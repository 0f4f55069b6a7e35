-- What the scripts do with the queue. Inserted after the paths on which nobody else is to be granted the lock, since Lua
-- creates functions at every run. Needs now and publish: PUBLISH or SPUBLISH. Sets refused if the server refuses it.
local refused = false
-- @include common/digits

local function processOf(owner) return string.match(owner, '^(.*):') end
local function ticketOf(owner) return string.match(owner, '^(.*)@') or owner end

-- Returns how many connections of the process got the message. One at a replica gets what is published, and is not
-- counted: a grant must not reach a process that is passed over. So it is published only where somebody is counted.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local counted = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel)
  if tonumber(counted[2]) == 0 then return 0 end
  local heard = counted.err and counted or redis.pcall(publish, channel, message)
  if type(heard) == 'number' then return heard end
  refused = true
  return 0
end

-- Mints a token; '' without a fence. For a free lock without waiters, fair/acquire has minted one before.
local function mint()
  if not fence then return '' end
  -- @include fair/write-nothing
  local last = redis.call('GET', fence)
  -- @include common/mint FENCE_KEY=fence
end

-- The token of the grant that holds the lock; empty where a process without fencing may have granted it.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return tonumber(last) and (not grantedAt or last == grantedAt) and last or ''
end

-- ms since the last pause ended; below 0 while it lasts. One too far ahead is of before the clock was set back.
local function sincePause()
  local at = tonumber(redis.call('HGET', tickets, 'pause'))
  return at and at - now <= LONGEST_PAUSE_MICROS and (now - at) / 1000 or math.huge
end

-- ms for which a free lock is left to pollers.
local function pauseLeft() return math.max(0, math.ceil(-sincePause())) end

-- ms until the lock's key ends, or until a free lock may be handed over.
local function lifeLeft()
  local life = redis.call('PTTL', lock)
  return life == -2 and pauseLeft() or life
end

-- OWNER_OUTSIDER, unless the holder has a grant from the queue, or its process runs the script, or is noted.
local function outsider(holder, process, itsNoted)
  if not holder or string.find(holder, '@', 1, true) then return '' end
  return (itsNoted or processOf(holder) == process) and '' or 'OWNER_OUTSIDER'
end

-- What is noted of a process: until when it lives in ms, the ttl of its ticket, how it is notified.
local function presenceIn(noted)
  local lifeEnd, ttl, how = string.match(noted or '', '^(%d+):(%d+):(%a+)$')
  return tonumber(lifeEnd), tonumber(ttl), how
end

-- The position of a caller that called `age` microseconds ago; and the last ticket in the queue.
local function positionOf(age)
  local last, lastAt = unpack(redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  lastAt = tonumber(lastAt or 0)
  return digits(lastAt > now + SET_BACK and lastAt + 1 or now - age), last
end

-- Notes that the process of a queued ticket lives for `life` ms, if `noted` does not say it. `isNew`: the queue may have
-- no expiry yet.
local function note(process, noted, how, ttl, life, isNew)
  local lifeEnd, notedTtl, notedHow = presenceIn(noted)
  local longer = lifeEnd and lifeEnd - now / 1000 - life
  local isNoted = notedHow == how and notedTtl == tonumber(ttl) and longer >= 0 and longer <= NOTED_LONGER
  if isNoted and not isNew then return end
  local total = life + NOTED_LONGER
  redis.call('HSET', tickets, process, digits(now / 1000 + total) .. ':' .. ttl .. ':' .. how)
  -- The queue may be new, and others noted for longer.
  total = math.max(total, redis.call('PTTL', tickets))
  redis.call('PEXPIRE', tickets, total)
  if redis.call('PTTL', queue) < total then redis.call('PEXPIRE', queue, total) end
  -- Where there are many fields, those of the dead go: at most once a second a process.
  if isNoted or redis.call('HLEN', tickets) <= redis.call('ZCARD', queue) + 16 then return end
  local fields = redis.call('HGETALL', tickets)
  for i = 1, #fields, 2 do
    local itsEnd = presenceIn(fields[i + 1])
    if itsEnd and itsEnd * 1000 < now then redis.call('HDEL', tickets, fields[i]) end
  end
end

-- Where the lock is the ticket's already, as a reply or message was lost: gives it the full ttl. Returns as handOver.
local function grantedBefore(ticket, holder, ttl)
  if type(holder) ~= 'string' or ticketOf(holder) ~= ticket then return end
  -- @include common/prolong
  redis.call('ZREM', queue, ticket)
  local token = tokenOf(holder)
  return holder, token == '' and mint() or token, redis.call('PTTL', lock)
end

-- Not the option `handOver`, of which no script knows.
-- Gives a lock that is or will be free to the first ticket whose process can be reached. `mine`: the process that
-- runs the script, for the ticket `asking`. Only that one gets its full ttl, `ttlAsked`, and every other one the
-- claim window.
-- `ticket`, `noted`: the first ticket, and what is noted of its process, if the script has read that already.
-- Returns the owner and the token, both '' for a ticket of another process, and the ms that are granted; or nothing.
local function handOver(mine, asking, ttlAsked, ticket, noted)
  local passedOver, token = 0
  while true do
    ticket = ticket or redis.call('ZRANGE', queue, passedOver, passedOver)[1]
    if not ticket then
      -- Those that were passed over do not have it.
      if passedOver > 0 then redis.call('DEL', lock) end
      return
    end
    local owner = ticket .. '@' .. digits(now)
    if ticket == asking then
      redis.call('ZREM', queue, ticket)
      redis.call('SET', lock, owner, 'PX', ttlAsked)
      return owner, mint(), tonumber(ttlAsked)
    end
    local process = processOf(ticket)
    local lifeEnd, ttl, how = presenceIn(noted or redis.call('HGET', tickets, process))
    if not lifeEnd or lifeEnd * 1000 < now then
      -- Its process counts as dead. If alive, it enters the ticket again, with its first score.
      redis.call('ZREM', queue, ticket)
    else
      local window = math.min(CLAIM_WINDOW, ttl)
      token = token or mint()
      -- Before the message, since who gets that enters. Out of memory: see script-parts.ts.
      if redis.pcall('SET', lock, owner, 'PX', window).err then
        -- @include fair/write-nothing
        redis.call('SET', lock, owner, 'PX', window)
      end
      -- A process that polls finds the grant by itself.
      if process == mine or how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0 then
        redis.call('ZREM', queue, ticket)
        if process ~= mine then owner, token = '', '' end
        return owner, token, window
      end
      -- Dead or reconnecting: it keeps its position.
      passedOver = passedOver + 1
    end
    ticket, noted = nil, nil
  end
end
