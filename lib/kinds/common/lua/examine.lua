-- Finds whether the lock KEYS[1] is ARGV[1]'s: sets lock, owner, state.
local lock, owner, state = KEYS[1], ARGV[1], nil
-- @include THIS_KIND/held
