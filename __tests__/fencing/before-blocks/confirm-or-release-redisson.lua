local lock, owner, state = KEYS[1], ARGV[1], nil

local found = redis.pcall('HEXISTS', lock, owner)
if type(found) == 'table' then 
if not string.find(found.err, 'WRONGTYPE', 1, true) then return found end
state = 'stolen'
elseif found == 0 and redis.call('EXISTS', lock) == 0 then 
local written = redis.pcall('PEXPIRE', lock, 1)
if type(written) == 'table' and string.find(written.err, 'READONLY', 1, true) then return written end
state = 'expired'
elseif found == 0 then state = 'stolen' end
if state then return { state == 'expired' and 0 or -1, 0 } end
local ttl, ownListeners = tonumber(ARGV[2]), tonumber(ARGV[3])

if ownListeners then
  
local heard = redis.pcall(ARGV[5], ARGV[6], '0')
if type(heard) == 'table' and ARGV[5] == 'SPUBLISH' then heard = redis.pcall('PUBLISH', ARGV[6], '0') end
if type(heard) == 'table' then heard = -1 end
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
return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
