-- Finds whether lock is owner's, of a string key, whose value is the owner: sets state to 'expired' or 'stolen', and leaves
-- it nil where the lock is the owner's. An error of the server that says nothing of it is the script's reply.
--
-- Needs  lock; owner; state
local found = redis.pcall('GET', lock)
if type(found) == 'table' then
  -- @include common/examine-error
elseif not found then
  -- @include common/examine-gone EMPTY_WRITE="'PEXPIRE', lock, 1"
elseif found ~= owner then state = 'stolen' end
