-- Ends all leases that were inspected.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- KEYS[3]  the fence, with fencing
-- ARGV[1]  the members
-- ARGV[2]  ''
-- ARGV[3]  ''
-- ARGV[4]  the channel
-- Returns  1; 0: there were none of them any more
-- @include shared/lock
-- @include shared/queue
local ended = 0
if not readHolders() then return 0 end
-- By force: the holders did not ask for this.
for seen in string.gmatch(ARGV[1], '%S+') do ended = ended + removeLease(seen) end
if ended == 0 then return 0 end
readQueue()
letIn(nil, ARGV[4], true)
settle()
return 1
