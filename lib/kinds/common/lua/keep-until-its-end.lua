-- Makes the lock KEYS[1] of ARGV[1] that of nobody, until its minHold ends.
--
-- KEEP_FOR, MIN_HOLD, GIVEN_TTL  ms: see left-to-keep.lua; the last one is the ttl of the acquisition
-- @include common/examine
-- It is kept already: the reply was lost.
local to = 'KEPT_PREFIX' .. owner
if state == 'stolen' and IS_GIVEN then return 1 end
-- @include common/return-unless-held
-- @include common/left-to-keep GRANT_AGE="remaining >= 0 and GIVEN_TTL - remaining"
-- @include THIS_KIND/give
