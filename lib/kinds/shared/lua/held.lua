-- Finds whether owner has a live lease of this kind: sets state, nil when it has. Other owners hold the lock too, so the
-- command that writes touches nothing but the owner's member.
--
-- Needs  lock; owner; state
-- SHARED_KIND  the kind
local member = 'SHARED_KIND:' .. owner
-- @include common/now
local found = redis.pcall('ZSCORE', lock, member)
if type(found) == 'table' then
  -- @include common/examine-error
elseif not found or tonumber(found) <= now then
  -- @include common/examine-gone EMPTY_WRITE="'ZREM', lock, member"
end
