-- Enters, or takes a position in the queue. Before that ends a lease of its process, if one is to end: so a lease that ends
-- and the next caller need one script. Takes over what an earlier attempt has, since each has an owner value of its own.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- KEYS[3]  the fence, with fencing
-- ARGV[1]  the kind: semaphore, read or write
-- ARGV[2]  the owner
-- ARGV[3]   the channel
-- ARGV[4]   ttl in ms
-- ARGV[5]   permits; 0 for others than semaphores
-- ARGV[6]   ms since the permits were given
-- ARGV[7]   ms by which they have to be later than those there; '': another process gave them
-- ARGV[8]   1 to queue, or 0
-- ARGV[9]   arrival, or '' when it is not known
-- ARGV[10]  µs since the call
-- ARGV[11]  ms for which the ticket is kept
-- ARGV[12]  ms for which it may be let in without an attempt; of a semaphore, for which its process passes a permit on
-- ARGV[13]  the owner of the earlier attempt
-- ARGV[14]  the owner whose lease ends, or ''
-- Reply[1]  1: that lease was released; 0: there was none
-- Reply[2]  -1: the server refused to publish; else 0
-- Reply[3]  the owner has entered: 1, or 2 when a writer waits; of a semaphore the number of permits; with a fence the token,
--           as text. This ends the reply. 0: it has not entered
-- Reply[4]  ms until the first lease ends, or until the first ticket is dropped
-- Reply[5]  the owner of that lease, or ''
-- Reply[6]  arrival, or ''
-- Reply[7]  the number of permits, 0 for others than semaphores
-- Reply[8]  when its lease will end if it is let in without another attempt
-- @include shared/lock
-- @include shared/queue
-- Without effect: for a key of another type, or without memory, it fails before anything was written.
redis.call('ZADD', lock, 'XX', 0, '')
local ended = readHolders()
-- The error for a key of another type.
if not ended then return redis.pcall('GET', lock) end
local ending = ARGV[14]
earlier = kind .. ':' .. ARGV[13]
local leaseEnd = earlier ~= member and redis.call('ZSCORE', lock, earlier)
if leaseEnd then
  -- The new one comes first: a key without members is deleted.
  redis.call('ZADD', lock, leaseEnd, member)
  redis.call('ZREM', lock, earlier)
end
local found = ending ~= '' and removeLease(kind .. ':' .. ending) or 0
local channel, ttl, given, age, laterBy = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local queues, arrival, keptFor, entersFor = ARGV[8] == '1', tonumber(ARGV[9]), tonumber(ARGV[11]), tonumber(ARGV[12])
local hadQueue = readQueue()

for _, other in ipairs({ firstHolder or member, queue[1] and queue[1].ticket or member }) do
  if (string.sub(other, 1, 10) == 'semaphore:') ~= (kind == 'semaphore') then
    local isHere, isThere = 'a semaphore', 'a read/write lock'
    if kind ~= 'semaphore' then isHere, isThere = isThere, isHere end
    return redis.error_reply('WRONGKIND It is ' .. isThere .. ' in Redis, and it is used as ' .. isHere .. ' here')
  end
end

-- The number that was given last counts. A time to come is from before the clock was set back.
local stored = permits
local isGiven = not stored or laterBy and (now - age - laterBy >= givenAt or givenAt > now)
if isGiven then permits, givenAt = given, now - age end

local score = redis.call('ZSCORE', lock, member)
local own
local hadWriter, isMovedBack = false, false
for _, waiter in ipairs(queue) do
  if waiter.ticket == member then own = waiter end
  hadWriter = hadWriter or waiter.kind == 'write'
end
if score then
  -- It is ours already. A late repetition must not shorten a renewed lease.
  if tonumber(score) < now + ttl then redis.call('ZADD', lock, digits(now + ttl), member) end
  hasEntered = true
else
  if not own then
    own = { ticket = member, kind = kind }
    queue[#queue + 1] = own
  end
  -- One that lies ahead is of before the clock was set back. A reader that comes first stays there.
  local micros = time[1] * 1000000 + time[2]
  if not arrival or arrival > micros then arrival = micros - ARGV[10] end
  isMovedBack = own.arrival and 0 < own.arrival and own.arrival < arrival
  if own.arrival ~= 0 then own.arrival = arrival end
  own.leaseEnd = digits(now + ttl)
  sortQueue()
  -- A process that gives a permit back goes on with it if those before its caller are served by their own processes.
  if kind == 'semaphore' and found == 1 and entersFor == 0 and mayEnter(own) then
    local place = 1
    while queue[place] ~= own and now < tonumber(queue[place].enterUntil or 0) do place = place + 1 end
    if queue[place] == own then table.insert(queue, 1, table.remove(queue, place)) end
  end
end
local makesRoom = found == 1 or ended > 0 or isDropped or isMovedBack or stored and permits > stored
local published = letIn(own, makesRoom and channel, makesRoom)
settle()

local granted, refusal
if score or own.hasEntered then
  granted = kind == 'semaphore' and permits or isWanted and 2 or 1
else
  arrival = digits(own.arrival)
  if queues then
    -- Without an end of its lease it is not let in.
    local leaseEnd = kind ~= 'semaphore' and entersFor > 0 and own.leaseEnd or '0'
    local lasts = digits(now + keptFor) .. ':' .. digits(now + entersFor) .. ':' .. leaseEnd
    redis.call('HSET', waiters, member, arrival .. ':' .. lasts)
    -- The readers of other processes let nobody in from now on.
    if kind == 'write' and not hadWriter and holders > 0 then redis.pcall('PUBLISH', channel, 'wanted') end
  end
  local first, firstEnd = firstLease()
  local ends = firstEnd or queue[1] ~= own and queue[1].seenUntil or now + 1
  refusal = { math.max(0, ends - now), first and string.match(first, ':(.*)$') or '', arrival, permits, own.leaseEnd }
end

if #queue == 0 or #queue == 1 and queue[1] == own and not queues then
  if hadQueue then redis.call('DEL', waiters) end
else
  if kind == 'semaphore' and isGiven then
    redis.call('HSET', waiters, 'permits', digits(permits) .. ':' .. digits(givenAt))
  end
  -- Last: see script-parts.ts.
  if redis.call('PTTL', waiters) < keptFor then redis.call('PEXPIRE', waiters, keptFor) end
end
if granted and KEYS[3] then
  local last = redis.call('GET', KEYS[3])
  if score and last then
    granted = last
  else
    granted = (function()
      -- @include common/mint FENCE_KEY=KEYS[3]
    end)()
  end
end
if granted then return { found, published, granted } end
return { found, published, 0, unpack(refusal) }
