-- Leaves the mark of return-if-forced.lua. After a write: out of memory, Redis refuses none then.
--
-- Needs  told
if mark then redis.pcall('SET', mark, told, 'PX', ARGV[2]) end
