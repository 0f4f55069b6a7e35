local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
-- Nearly always it is free. Why the server refused this shows below.
local set = not KEYS[2] and redis.pcall('SET', lock, owner, 'NX', 'PX', ttl)
if set and not set.err then return 1 end
local holder = redis.call('GET', lock)
if holder and holder ~= owner then return { redis.call('PTTL', lock), holder } end

local last = KEYS[2] and redis.call('GET', KEYS[2])
local time = KEYS[2] and redis.call('TIME')
if not holder then
  redis.call('SET', lock, owner, 'PX', ttl)
elseif redis.call('PTTL', lock) < tonumber(ttl) then
  -- It is ours already: the reply of an earlier attempt was lost. A late repetition must not shorten a renewed life.
  redis.call('PEXPIRE', lock, ttl)
end
if last and holder then return last end

if not KEYS[2] then return 1 end

local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', KEYS[2], token, 'PX', 86400000)
return token
