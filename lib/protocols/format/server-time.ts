/** In Lua: sets `time`, the reply of TIME, and `now`, the server's time in ms. */
export const READ_TIME = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;
