-- Sets holder: the owner, or nil.
local holder = redis.call('HKEYS', KEYS[1])[1]
