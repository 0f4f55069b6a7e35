-- Enters, or takes a position in the queue. Before that ends a lease of its process, if one is to end: so a lease that ends
-- and the next caller need one script. Takes over what an earlier attempt has, since each has an owner value of its own.
--
-- KEYS[1]   lock
-- KEYS[2]   waiters
-- KEYS[3]   fence, with fencing
-- ARGV[1]   kind       semaphore, read or write
-- ARGV[2]   owner      the owner value of this attempt
-- ARGV[3]   channel
-- ARGV[4]   ttl        ms
-- ARGV[5]   given      the number of permits; 0 for others than semaphores
-- ARGV[6]   givenFor   ms since that number was given
-- ARGV[7]   laterBy    ms by which it has to be later than the number there; '': another process gave it
-- ARGV[8]   queues     1 to queue, or 0
-- ARGV[9]   arrival    that of its ticket, or '' when it is not known
-- ARGV[10]  calledFor  µs since the call
-- ARGV[11]  keptFor    ms for which the ticket is kept
-- ARGV[12]  entersFor  ms for which it may be let in without an attempt; of a semaphore, for which its process passes a permit on
-- ARGV[13]  earlier    the owner value of the earlier attempt
-- ARGV[14]  ending     the owner whose lease ends, or ''
-- Reply[1]  released   1: that lease was released; 0: there was none
-- Reply[2]  published  -1: the server refused to publish; else 0
-- Reply[3]  granted    the owner has entered: 1, or 2 when a writer waits; of a semaphore the number of permits; with a fence
--                      the token, as text. This ends the reply. 0: it has not entered
-- Reply[4]  endsIn     ms until the first lease ends, or until the first ticket is dropped
-- Reply[5]  holder     the owner of that lease, or ''
-- Reply[6]  arrival    that of its ticket, or ''
-- Reply[7]  permits    their number, 0 for others than semaphores
-- Reply[8]  leaseEnd   when its lease will end if it is let in without another attempt

-- @include shared/lock
-- @include shared/queue
local channel = ARGV[3]
local ttl = tonumber(ARGV[4])
local given = tonumber(ARGV[5])
local givenFor = ARGV[6]
local laterBy = tonumber(ARGV[7])
local queues = ARGV[8] == '1'
local arrival = tonumber(ARGV[9])
local calledFor = ARGV[10]
local keptFor = tonumber(ARGV[11])
local entersFor = tonumber(ARGV[12])
earlier = kind .. ':' .. ARGV[13]
local ending = ARGV[14]

-- First, who has the lock, and its waiters. ZADD has no effect here: for a key of another type, or without memory, it fails
-- before anything was written.
redis.call('ZADD', lock, 'XX', 0, '')
local ended = readHolders()
-- The error for a key of another type.
if not ended then return redis.pcall('GET', lock) end
-- @include shared/take-lease-over
local released = ending ~= '' and removeLease(kind .. ':' .. ending) or 0
local hadQueue = readQueue()
-- @include shared/refuse-other-kind
-- @include shared/take-permits

-- Then, where the owner stands among them.
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
  -- @include shared/stand-in-queue
end

-- At last, those enter that may.
local makesRoom = released == 1 or ended > 0 or isDropped or isMovedBack or stored and permits > stored
local published = letIn(own, makesRoom and channel, makesRoom)
settle()
local granted, refusal
if score or own.hasEntered then
  granted = kind == 'semaphore' and permits or isWanted and 2 or 1
else
  -- @include shared/wait-in-queue
end
-- @include shared/write-queue
if not granted then return { released, published, 0, unpack(refusal) } end
-- @include shared/token-of-writer
return { released, published, granted }
