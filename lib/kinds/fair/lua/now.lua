-- Sets now: microseconds, by the clock of the server.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
