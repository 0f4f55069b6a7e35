-- A lease that an earlier attempt has becomes that of member.
--
-- Needs  lock; member; earlier: the member of that attempt
local earlierEnd = earlier ~= member and redis.call('ZSCORE', lock, earlier)
if earlierEnd then
  -- The new one comes first: a key without members is deleted.
  redis.call('ZADD', lock, earlierEnd, member)
  redis.call('ZREM', lock, earlier)
end
