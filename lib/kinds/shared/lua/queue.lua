-- Who has the lock, the queue, and who may enter. readHolders comes first. It removes leases that have ended, which stay
-- in the key while others prolong it, and returns how many there were. It sets:
--
--   leases, held  how many there are, and how many permits of a semaphore they have; scripts that change them count on
--   firstHolder   a member; wasWritten: a writer had the lock until now, or has it
--
-- To add the permits up takes time for each lease. So a semaphore keeps the sums with the leases. They are right while
-- they agree with the number of members: what else may change the leases, also a process with a version before this one,
-- only removes some, or removes the sums too.
--
-- readQueue comes next. It sets:
--
--   queue      the tickets, in the order of their arrival; when a writer has left, readers come first
--   permits    the number that counts for them, given at givenAt
--   isDropped  there were tickets whose process has not polled for too long, which it removes, but not member
--   holders    as held, with those in front of a waiter; isWritten: a writer has the lock
--
-- The ticket of an earlier attempt, if there was one, becomes that of member. Returns whether there was anything in the
-- hash. settle is called last.
local queue, permits, givenAt, isDropped, holders, isWritten = {}, nil, nil, false, 0, false
local leases, held, firstHolder, wasWritten, isSemaphore, hasEntered, earlier
local notedLeases, notedHeld = 0, 0

-- How many permits an owner has, or asks for.
local function permitsOf(ticket) return tonumber(string.match(ticket, '%*(%d+)$') or 1) end

local function sortQueue()
  table.sort(queue, function(one, other)
    if one.arrival == other.arrival then return one.ticket < other.ticket end
    return one.arrival < other.arrival
  end)
end

-- A lease came to the lock, or (-1) has left it.
local function count(owner, sign) held, leases = held + sign * permitsOf(owner), leases + sign end

-- Returns whether there was one, as 1 or 0.
local function removeLease(owner)
  local found = redis.call('ZREM', lock, owner)
  if found == 1 then count(owner, -1) end
  return found
end

-- Beside the sums, which have scores below 0.
local function firstLease()
  local index = notedLeases > 0 and 2 or 0
  return unpack(redis.call('ZRANGE', lock, index, index, 'WITHSCORES'))
end

local function readHolders()
  local lowest = redis.call('ZRANGE', lock, 0, 1, 'WITHSCORES')
  if isForeign(lowest[1]) then return nil end
  leases = redis.call('ZCARD', lock)
  held, firstHolder = leases, lowest[1]
  wasWritten = string.sub(firstHolder or '', 1, 6) == 'write:'
  if firstHolder == 'HELD_SUM' and lowest[3] == 'LEASES_SUM' and leases - 2 == -lowest[4] then
    held, leases = -lowest[2], leases - 2
    notedHeld, notedLeases = held, leases
  elseif string.sub(firstHolder or '', 1, 10) == 'semaphore:' then
    leases = leases - redis.call('ZREM', lock, 'HELD_SUM', 'LEASES_SUM')
    held = 0
    for _, holder in ipairs(redis.call('ZRANGE', lock, 0, -1)) do held = held + permitsOf(holder) end
  end
  local ended, first, firstEnd = 0, firstLease()
  while first and tonumber(firstEnd) <= now do
    ended = ended + removeLease(first)
    first, firstEnd = firstLease()
  end
  if leases == 0 and firstHolder then
    redis.call('DEL', lock)
    firstHolder, notedHeld, notedLeases = nil, 0, 0
  end
  isSemaphore = string.sub(firstHolder or member, 1, 10) == 'semaphore:'
  return ended
end

-- The expiry comes last: the key may end by that, and what was written later would have none.
local function settle()
  if isSemaphore and (held ~= notedHeld or leases ~= notedLeases) then
    if leases == 0 then
      redis.call('DEL', lock)
    else
      redis.call('ZADD', lock, digits(-held), 'HELD_SUM', digits(-leases), 'LEASES_SUM')
    end
    notedHeld, notedLeases = held, leases
  end
  if hasEntered then expireWithLastLease() end
end

local function readQueue()
  holders = held
  isWritten = leases > 0 and wasWritten
  local fields = redis.call('HGETALL', waiters)
  for i = 1, #fields, 2 do
    local ticket, value = fields[i], fields[i + 1]
    if ticket == earlier and earlier ~= member then
      -- The new one comes first: a key without fields is deleted.
      redis.call('HSET', waiters, member, value)
      redis.call('HDEL', waiters, ticket)
      ticket = member
    end
    local first, second, rest = string.match(value, '^(%d+):(%d+)(.*)$')
    local enterUntil, leaseEnd = string.match(rest, '^:(%d+):(%d+)$')
    -- It was entered before the clock was set back. If alive, its process enters it again.
    local isAhead = enterUntil and enterUntil - now > SET_BACK
    if ticket == 'permits' then
      permits, givenAt = tonumber(first), tonumber(second)
    elseif ticket == member or tonumber(second) > now and not isAhead then
      local waiter = { ticket = ticket, kind = string.match(ticket, '^%a+'), arrival = tonumber(first) }
      waiter.seenUntil, waiter.enterUntil, waiter.leaseEnd = second, enterUntil, leaseEnd
      if wasWritten and holders == 0 and waiter.kind == 'read' then
        waiter.arrival = 0
        redis.call('HSET', waiters, ticket, '0:' .. second .. rest)
      end
      queue[#queue + 1] = waiter
    else
      redis.call('HDEL', waiters, ticket)
      isDropped = true
    end
  end
  sortQueue()
  return #fields > 0
end

local function mayEnter(waiter)
  -- One that takes all: the number of permits was lowered.
  if waiter.kind == 'semaphore' then return holders == 0 or holders + permitsOf(waiter.ticket) <= (permits or 1) end
  if waiter.kind == 'read' then return not isWritten end
  return holders == 0
end

-- Lets in those at the front of the queue that may enter: `own`, and with a `channel` all others. `enters`: they have the
-- lock at once where that is possible. Returns -1 when the server refused to publish, else 0.
local isWanted
local function letIn(own, channel, enters)
  local waiting, message, isOpen = {}, {}, true
  isWanted = false
  for _, waiter in ipairs(queue) do
    -- One that may not enter stops those behind it. One that may, and does not yet, counts as if it had entered.
    isOpen = isOpen and mayEnter(waiter)
    local isHere = isOpen and (waiter == own or (enters and waiter.leaseEnd ~= '0' and now < tonumber(waiter.enterUntil or 0)))
    if isOpen then
      holders = holders + permitsOf(waiter.ticket)
      isWritten = waiter.kind == 'write'
      if channel and waiter ~= own then message[#message + 1] = waiter.ticket .. (isHere and '=' .. waiter.leaseEnd or '') end
    end
    if isHere then
      hasEntered = true
      waiter.hasEntered = true
      if waiter.seenUntil then redis.call('HDEL', waiters, waiter.ticket) end
      redis.call('ZADD', lock, waiter.leaseEnd, waiter.ticket)
      count(waiter.ticket, 1)
    else
      waiting[#waiting + 1] = waiter
      isWanted = isWanted or waiter.kind == 'write'
    end
  end
  queue = waiting
  if #message == 0 then return 0 end
  if isWanted then message[#message + 1] = 'wanted' end
  -- pcall: else a user without rights on channels could not release.
  return type(redis.pcall('PUBLISH', channel, table.concat(message, ' '))) == 'table' and -1 or 0
end
