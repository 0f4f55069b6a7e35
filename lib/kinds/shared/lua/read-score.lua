-- Sets score. A key of another type is the key of another owner. Returns any other error.
--
-- Needs  what lock.lua sets
-- OTHER_TYPE  what is returned for a key of another type
local score = redis.pcall('ZSCORE', lock, member)
if type(score) == 'table' then
  if string.find(score.err, 'WRONG_TYPE', 1, true) then return OTHER_TYPE end
  return score
end
