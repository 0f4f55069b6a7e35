-- What a lock looks like, for people. Those that listen count as waiters.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- ARGV[1]  NUMSUB, SHARDNUMSUB or '': nobody is counted
-- ARGV[2]  the channel whose listeners wait
-- Returns  { owner or '', remaining ms of its key, last token or '', how many wait or -1 }
-- @include THIS_KIND/holder
-- @include common/readable READ_VALUE=holder
local remaining = holder and redis.call('PTTL', KEYS[1]) or 0
local waiting = -1
-- pcall: a user without rights on it, or an old server, does not learn how many wait.
if ARGV[1] ~= '' then
  local counted = redis.pcall('PUBSUB', ARGV[1], ARGV[2])
  if not counted.err then waiting = tonumber(counted[2]) end
end
local fence = KEYS[2]
local token = holder and fence and redis.call('GET', fence) or ''
if not tonumber(token) then token = '' end
return { holder or '', remaining, token, waiting }
