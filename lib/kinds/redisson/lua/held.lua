-- Finds whether lock is owner's, of a hash key, which has the owner as its field: sets state to 'expired' or 'stolen', and
-- leaves it nil where the lock is the owner's. An error of the server that says nothing of it is the script's reply.
--
-- Needs  lock; owner; state
local found = redis.pcall('HEXISTS', lock, owner)
if type(found) == 'table' then
  -- @include common/examine-error
elseif found == 0 and redis.call('EXISTS', lock) == 0 then
  -- @include common/examine-gone EMPTY_WRITE="'PEXPIRE', lock, 1"
elseif found == 0 then state = 'stolen' end
