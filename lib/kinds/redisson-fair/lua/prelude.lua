-- How every script begins: see scripts.ts.
local lock, queue, timeouts, token = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, ttl, wait = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- @include common/now
