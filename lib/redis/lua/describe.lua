-- What the key of a lock is.
--
-- KEYS[1]  the lock
-- Returns  its type; of a shared lock the kind of its first member
local type = redis.call('TYPE', KEYS[1])
type = type.ok or type
if type ~= 'zset' then return type end
local kind = string.match(redis.call('ZRANGE', KEYS[1], 0, 0)[1] or '', '^(%a+):')
return string.find(' SHARED_KINDS ', ' ' .. tostring(kind) .. ' ', 1, true) and kind or type
