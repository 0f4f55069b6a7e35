local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', lock) == 0 then
  
redis.call('HSET', lock, owner, 1)
redis.call('PEXPIRE', lock, ttl)
  return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
end
-- Not by pcall: a key of another type is an error that waiting does not mend.
if redis.call('HEXISTS', lock, owner) == 0 then return { redis.call('PTTL', lock), redis.call('HKEYS', lock)[1] } end

if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
return KEYS[2] and tonumber(redis.call('GET', KEYS[2])) or 1
