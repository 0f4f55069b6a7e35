-- For a lock that is not there: a replica may be behind, and says nothing. READONLY is the script's reply then.
--
-- EMPTY_WRITE  a command that writes, and changes nothing
local written = redis.pcall(EMPTY_WRITE)
if type(written) == 'table' and string.find(written.err, 'READ_ONLY', 1, true) then return written end
state = 'expired'
