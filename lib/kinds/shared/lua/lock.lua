-- What every script begins with. KEYS[1] to ARGV[2] are the same in all of them: see scripts.ts.
local lock, waiters, kind, owner = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local member = kind .. ':' .. owner
-- @include common/now
-- @include common/digits

-- Whether the lowest member is of an application's sorted set, of which no script removes anything.
local function isForeign(lowest)
  return lowest and not ({ ALL_KINDS })[string.match(lowest, '^(%a+):')]
end

local function expireWithLastLease()
  redis.call('PEXPIREAT', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])
end
