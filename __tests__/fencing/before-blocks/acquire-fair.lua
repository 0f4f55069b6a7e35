local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ticket, ttl = ARGV[1], ARGV[2]
local hasWaiters = redis.call('EXISTS', queue, tickets) > 0
-- Nearly always the lock is free.
local set = not hasWaiters and redis.pcall('SET', lock, ticket, 'NX', 'PX', ttl)
if set and not set.err then
  if not fence then return 1 end
  local time, last = redis.call('TIME'), redis.call('GET', fence)
  
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', fence, token, 'PX', 86400000)
return token
end
local holder = redis.call('GET', lock)
-- The server refused to write.
if set and not holder then return set end
local publish, how, life, age, score = string.match(ARGV[3], '^(%S+) (%S+) (%S+) (%S+) (%S*)$')

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local refused = false

-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

local function processOf(owner) return string.match(owner, '^(.*):') end
local function ticketOf(owner) return string.match(owner, '^(.*)@') or owner end

-- Returns how many connections of the process got the message.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local heard = redis.pcall(publish, channel, message)
  if type(heard) == 'number' then return heard end
  refused = true
  return 0
end

-- Empty without a fence.
local function mint()
  if not fence then return '' end
  redis.call('ZREM', queue, '')
  local last = redis.call('GET', fence)
  
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', fence, token, 'PX', 86400000)
return token
end

-- The token of the grant that holds the lock: that is its time, unless the clock was set back. Empty where this is not
-- certain, since a process without fencing may have granted it.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return last and (not grantedAt or last == grantedAt) and last or ''
end

-- ms since the last pause ended; below 0 while it lasts. One that is too far ahead was written before the clock was set
-- back.
local function sincePause()
  local at = tonumber(redis.call('HGET', tickets, 'pause'))
  return at and at - now <= 500000 and (now - at) / 1000 or math.huge
end

-- ms for which a free lock is left to pollers.
local function pauseLeft() return math.max(0, math.ceil(-sincePause())) end

-- ms until another attempt is worth it: until the lock's key ends, or until a free lock may be handed over.
local function lifeLeft()
  local life = redis.call('PTTL', lock)
  return life == -2 and pauseLeft() or life
end

-- OUTSIDER, unless the owner value of the holder is that of a grant from the queue, or its process is the one that runs
-- the script, or has had a ticket lately: then it is noted.
local function outsider(holder, process, itsNoted)
  if not holder or string.find(holder, '@', 1, true) then return '' end
  return (itsNoted or processOf(holder) == process) and '' or 'outsider'
end

-- What is noted of a process: until when it lives in ms, the ttl of its ticket, how it is notified.
local function presenceIn(noted)
  local lifeEnd, ttl, how = string.match(noted or '', '^(%d+):(%d+):(%a+)$')
  return tonumber(lifeEnd), tonumber(ttl), how
end

-- The position of a caller that called `age` microseconds ago, which may have waited in its process since; and the last
-- ticket in the queue.
local function positionOf(age)
  local last, lastAt = unpack(redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  lastAt = tonumber(lastAt or 0)
  return digits(lastAt > now + 1000000 and lastAt + 1 or now - age), last
end

-- Notes that the process of a ticket in the queue is alive for `life` ms, where `noted` does not say it. `isNew`: the queue
-- may have no expiry yet.
local function note(process, noted, how, ttl, life, isNew)
  local lifeEnd, notedTtl, notedHow = presenceIn(noted)
  local longer = lifeEnd and lifeEnd - now / 1000 - life
  local isNoted = notedHow == how and notedTtl == tonumber(ttl) and longer >= 0 and longer <= 1000
  if isNoted and not isNew then return end
  local total = life + 1000
  redis.call('HSET', tickets, process, digits(now / 1000 + total) .. ':' .. ttl .. ':' .. how)
  for _, key in ipairs({ queue, tickets }) do
    if redis.call('PTTL', key) < total then redis.call('PEXPIRE', key, total) end
  end
  -- Each process leaves a field. It is known by that while it lives. When there are many, those of the dead go. It reads
  -- all of them: at most once a second for each process.
  if isNoted or redis.call('HLEN', tickets) <= redis.call('ZCARD', queue) + 16 then return end
  local fields = redis.call('HGETALL', tickets)
  for i = 1, #fields, 2 do
    local itsEnd = presenceIn(fields[i + 1])
    if itsEnd and itsEnd * 1000 < now then redis.call('HDEL', tickets, fields[i]) end
  end
end

-- Where the lock is the ticket's already, since a reply or a message was lost: gives it the full ttl. Returns as handOver.
local function grantedBefore(ticket, holder, ttl)
  if type(holder) ~= 'string' or ticketOf(holder) ~= ticket then return end
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  redis.call('ZREM', queue, ticket)
  local token = tokenOf(holder)
  return holder, token == '' and mint() or token, redis.call('PTTL', lock)
end

-- Gives a lock that is free, or about to be, to the first ticket whose process can be reached. `mine`: the process that
-- runs the script. `asking`: the ticket that it was sent for. Only that one gets its full ttl, `ttlAsked`: its process
-- learns of it from the reply, and follows it up if the reply is lost. Every other grant lasts for the claim window.
-- `ticket`, `noted`: the first ticket, and what is noted of its process, if the script has read that already.
-- Returns the owner and the token, both '' for a ticket of another process, and the ms that are granted; or nothing. The
-- ticket is taken out of the queue before SET, so that a server at maxmemory allows it.
local function handOver(mine, asking, ttlAsked, ticket, noted)
  local passedOver, token = 0
  while true do
    ticket = ticket or redis.call('ZRANGE', queue, passedOver, passedOver)[1]
    if not ticket then return end
    local owner = ticket .. '@' .. digits(now)
    if ticket == asking then
      redis.call('ZREM', queue, ticket)
      redis.call('SET', lock, owner, 'PX', ttlAsked)
      return owner, mint(), tonumber(ttlAsked)
    end
    local process = processOf(ticket)
    local lifeEnd, ttl, how = presenceIn(noted or redis.call('HGET', tickets, process))
    if not lifeEnd or lifeEnd * 1000 < now then
      -- Its process counts as dead. If it is alive, it enters the ticket again, with its first score.
      redis.call('ZREM', queue, ticket)
    else
      local window = math.min(1000, ttl)
      token = token or mint()
      -- A process that polls finds the grant by itself.
      if process == mine or how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0 then
        redis.call('ZREM', queue, ticket)
        redis.call('SET', lock, owner, 'PX', window)
        if process ~= mine then owner, token = '', '' end
        return owner, token, window
      end
      -- It is dead or reconnecting: it is passed over and keeps its position.
      passedOver = passedOver + 1
    end
    ticket, noted = nil, nil
  end
end

local process, its = processOf(ticket), holder and processOf(holder)
local noted, itsNoted = unpack(redis.call('HMGET', tickets, process, its or ''))
local owner, token, left = grantedBefore(ticket, holder, ttl)
if how == 'none' and not owner then
  -- A caller that does not wait is refused only while the lock is held, so it ignores a pause.
  if not holder then
    owner, token, left = handOver(process)
    if not owner then
      -- No waiter can be reached.
      redis.call('ZREM', queue, '')
      redis.call('SET', lock, ticket, 'PX', ttl)
      owner, token, left = ticket, mint(), tonumber(ttl)
    end
  end
elseif not owner then
  local position, last = positionOf(age)
  -- The removal is a write too: see WRITE_NOTHING.
  if score == '' then score = position else redis.call('ZREM', queue, ticket) end
  -- Where an earlier attempt, whose reply was lost, has entered it, it keeps its position.
  if redis.call('ZADD', queue, 'NX', score, ticket) == 0 then score = redis.call('ZSCORE', queue, ticket) end
  note(process, noted, how, ttl, life, not last or last == ticket)
  if not holder then
    if pauseLeft() == 0 then owner, token, left = handOver(process, ticket, ttl) end
  elseif its and its ~= process and (not last or last == ticket or processOf(last) == its) then
    -- It passes the lock on among its own callers until it hears of others: of the first one that waits.
    notify(its, 'wanted')
  end
end
return { left or lifeLeft(), digits(now), score, owner or outsider(holder, process, itsNoted), token or '', holder or '' }
