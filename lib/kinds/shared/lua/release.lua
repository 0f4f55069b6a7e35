-- Releases what the owner has, and takes it out of the queue. Lets in those that may enter. Where it has to stay taken
-- until its minHold ends, those that could enter without that are asked to come: the reply to their next attempt says when it
-- ends.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- ARGV[1]  the kind: semaphore, read or write
-- ARGV[2]  the owner
-- ARGV[3]  the channel
-- ARGV[4]  to keep it: ms left by the local clock; else it is missing, and what follows
-- ARGV[5]  minHold of the acquisition in ms
-- ARGV[6]  ttl of the acquisition in ms
-- Reply[1]  1: released; 0: there was no lease; -1: the key is of another type
-- Reply[2]  -1: the server refused to publish; else 0
-- @include shared/lock
-- @include shared/queue
local channel, left, minHold, ttl = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
-- @include shared/read-score OTHER_TYPE="{ -1, 0 }"
redis.call('HDEL', waiters, member)
local kept = kind .. ':KEPT_PREFIX' .. owner
local wasKept = left and redis.call('ZSCORE', lock, kept)
if not readHolders() then return { -1, 0 } end
local found = removeLease(member)
local keeps = left and found == 1
local published = 0
if redis.call('EXISTS', waiters) == 1 then
  readQueue()
  published = letIn(nil, channel, not keeps)
  if #queue == 0 then redis.call('DEL', waiters) end
end

-- Kept already, and the reply was lost: a late attempt may have entered once more.
if wasKept then
  found = 1
elseif keeps then
  -- The time since the acquisition, by the clock of the server: see left-to-keep.lua.
  local age = ttl - (score - now)
  redis.call('ZADD', lock, digits(now + math.max(1, math.ceil(math.min(left, minHold - age)))), kept)
  count(kept, 1)
  hasEntered = true
end
settle()
return { found, published }
