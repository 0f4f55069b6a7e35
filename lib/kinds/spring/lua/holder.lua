-- Sets holder: the owner, or false.
local holder = redis.call('GET', KEYS[1])
