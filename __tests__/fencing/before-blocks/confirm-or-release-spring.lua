local lock, owner, state = KEYS[1], ARGV[1], nil

local found = redis.pcall('GET', lock)
if type(found) == 'table' then 
if not string.find(found.err, 'WRONGTYPE', 1, true) then return found end
state = 'stolen'
elseif not found then 
local written = redis.pcall('PEXPIRE', lock, 1)
if type(written) == 'table' and string.find(written.err, 'READONLY', 1, true) then return written end
state = 'expired'
elseif found ~= owner then state = 'stolen' end
if state then return { state == 'expired' and 0 or -1, 0 } end
local ttl, ownListeners = tonumber(ARGV[2]), tonumber(ARGV[3])

local last = KEYS[2] and redis.call('GET', KEYS[2])
local time = KEYS[2] and redis.call('TIME')
if ownListeners then
  
local message = KEYS[1]
local heard = redis.pcall('PUBLISH', ARGV[5] .. ':' .. KEYS[1], message)
local legacy = ARGV[6] and redis.pcall('PUBLISH', ARGV[5], message) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1
  -- Where the number of listeners is not known, others may listen.
  if heard == -1 or heard > ownListeners then
    
local deleted = 1
if type(redis.pcall(ARGV[4], KEYS[1])) == 'table' then
  redis.call('DEL', KEYS[1])
  deleted = 2
end
    return { deleted, heard }
  end
end
-- In any case: out of memory, Redis refuses other writes to a script that has not written yet.
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))

if not KEYS[2] then return 1 end

local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', KEYS[2], token, 'PX', 86400000)
return token
