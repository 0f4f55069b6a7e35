-- Leaves the mark of return-if-forced.lua. After a write: out of memory, Redis refuses none then.
if mark then redis.pcall('SET', mark, '', 'PX', ARGV[2]) end
