-- Ends all leases that were inspected.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- KEYS[3]  and more: the fence, with fencing, and the mark
-- ARGV[1]  the members
-- ARGV[2]  ms for which the mark is kept, or '': there is none
-- ARGV[3]  and more: see tell; then the channel
-- Returns  { 1, how many heard that it was taken }; where there are none of them any more 0, or -1: others hold the lock
-- @include common/return-if-forced
-- @include shared/lock
-- @include shared/queue
local ended, inspected = 0, {}
if not readHolders() then return -1 end
for seen in string.gmatch(ARGV[1], '%S+') do inspected[seen] = true end
-- By force: the holders did not ask for this.
for _, one in ipairs(redis.call('ZRANGE', lock, 0, -1)) do
  local shown = one
  -- @include shared/readable-member
  if inspected[shown] then ended = ended + removeLease(one) end
end
if ended == 0 then return leases > 0 and -1 or 0 end
-- @include common/tell
-- @include common/note-forced
readQueue()
letIn(nil, ARGV[words + 1], true)
settle()
return { 1, told }
