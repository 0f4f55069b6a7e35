local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner = ARGV[1]
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
local publish, how, life, age, ttl, next, more = ARGV[3], 'none', 0, 0, 0, '', ''
if #publish > 8 then
  publish, how, life, age, ttl, next, more = string.match(publish, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S*)(.*)$')
end
if next == '' then next = nil end
-- The first in the queue, and its position.
local first, firstAt
if isOwners then first, firstAt = unpack(redis.call('ZRANGE', queue, '0', '0', 'WITHSCORES')) end
firstAt = tonumber(firstAt)
-- Nobody waits in another process. Those that waited are forgotten where nobody waits here either.
if isOwners and not first and more == '' and not next then
  
local deleted = 1
if type(redis.pcall(ARGV[2], lock, tickets)) == 'table' then
  redis.call('DEL', lock, tickets)
  deleted = 2
end
  
local message = KEYS[1]
local heard = redis.pcall('PUBLISH', ARGV[4] .. ':' .. KEYS[1], message)
local legacy = ARGV[5] and redis.pcall('PUBLISH', ARGV[4], message) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1
  return deleted
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mine = string.match(owner, '^(.*):')
local noted, itsNoted
if first then noted, itsNoted = unpack(redis.call('HMGET', tickets, mine, string.match(first, '^(.*):'))) end
if isOwners and next and more == '' then
  -- It called before all that wait. But they have to know its process: a holder that never had a ticket may be a poller.
  local isFirst = first and now - age < firstAt and firstAt <= now + 1000000
  if not first or isFirst and noted then
    if redis.pcall('SET', lock, next, 'PX', ttl).err then
      -- Out of memory, Redis refuses SET to a script that has not written yet.
      redis.call('PEXPIRE', lock, ttl)
      redis.call('SET', lock, next, 'PX', ttl)
    end
    if not fence then return first and 2 or 1 end
    local last = redis.call('GET', fence)
    
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', fence, token, 'PX', 86400000)
return token
  end
end

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

local score
if isOwners and next then
  score = positionOf(age)
  if type(redis.pcall('ZADD', queue, score, next)) == 'table' then
    -- Out of memory.
    redis.call('ZREM', queue, '')
    redis.call('ZADD', queue, score, next)
  end
  note(mine, noted, how, ttl, life, not first)
  if first and tonumber(score) <= firstAt then first, itsNoted = nil, nil end
end
local granted, token, left
if not isOwners then
  granted, token, left = grantedBefore(next, holder, ttl)
  local position = next and redis.call('ZSCORE', queue, next)
  local kept = type(holder) == 'string' and string.match(holder, '^kept@(.*)$')
  if granted or position or kept and (kept == owner or ticketOf(kept) == owner) then
    -- An earlier run, whose reply was lost, has handed the lock over, or kept it, and has given the next ticket its position.
    return { left or lifeLeft(), digits(now), position or '', granted or '', token or '' }
  end
  -- The ticket of a holder is not in the queue.
  redis.call('ZREM', queue, ticketOf(owner))
end
local found = isOwners and 1 or holder and -1 or 0
local pause, interval, keepFor, minHold, keyTtl = 0, 0, 0, 0, 0
if more ~= '' then
  pause, interval, keepFor, minHold, keyTtl = string.match(more, '^ (%S+) (%S+) (%S+) (%S+) (%S+)$')
  pause, keepFor = tonumber(pause), tonumber(keepFor)
end
local pauseIn = pause > 0 and math.max(0, math.ceil(interval - pause - sincePause()))
if isOwners and (keepFor > 0 or pauseIn == 0) then
  if keepFor > 0 then
    -- The key of a grant by hand-over may not have its full ttl yet. Its owner value says its age.
    local grantedAt = string.match(holder, '@(%d+)$')
    
local left, remaining = tonumber(keepFor), redis.call('PTTL', KEYS[1])
local age = grantedAt and (now - grantedAt) / 1000 or remaining >= 0 and keyTtl - remaining
if age then left = math.min(left, minHold - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))
    redis.call('PEXPIRE', lock, left)
    redis.call('SET', lock, 'kept@' .. holder, 'PX', left)
    
local message = KEYS[1]
local heard = redis.pcall('PUBLISH', ARGV[4] .. ':' .. KEYS[1], message)
local legacy = ARGV[5] and redis.pcall('PUBLISH', ARGV[4], message) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1
  else
    
local deleted = 1
if type(redis.pcall(ARGV[2], lock)) == 'table' then
  redis.call('DEL', lock)
  deleted = 2
end
  
local message = KEYS[1]
local heard = redis.pcall('PUBLISH', ARGV[4] .. ':' .. KEYS[1], message)
local legacy = ARGV[5] and redis.pcall('PUBLISH', ARGV[4], message) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1
    found = deleted
    redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
    redis.call('PEXPIRE', tickets, math.max(redis.call('PTTL', tickets), math.ceil(pause)))
  end
  -- Its process polls, and so learns when the key or the pause ends.
  first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then notify(processOf(first), lock) end
  return { lifeLeft(), digits(now), score or '', '', '', '', found, refused and 1 or 0, 0, pauseIn or nil }
end
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token, left = handOver(mine, isOwners and next, ttl, first, itsNoted)
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  
local deleted = 1
if type(redis.pcall(ARGV[2], lock)) == 'table' then
  redis.call('DEL', lock)
  deleted = 2
end
  
local message = KEYS[1]
local heard = redis.pcall('PUBLISH', ARGV[4] .. ':' .. KEYS[1], message)
local legacy = ARGV[5] and redis.pcall('PUBLISH', ARGV[4], message) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1
  found = deleted
end
-- Mostly another process has it now.
if granted == '' and found == 1 and not refused and not pauseIn then return { left, digits(now), score or '' } end
return {
  left or lifeLeft(), digits(now), score or '', granted or '', token or '',
  '', found, refused and 1 or 0, 0, pauseIn and math.max(1, pauseIn) or nil
}
