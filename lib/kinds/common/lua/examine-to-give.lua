-- Comes before the lock is given to the owner value `to`. Sets isGiven: it has that already, and a reply was lost.
-- @include common/examine
local to, left = ARGV[2], ARGV[3]
local isGiven = state == 'stolen' and IS_GIVEN
if not isGiven then
  -- @include common/return-unless-held
end
