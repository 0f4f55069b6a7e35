-- The words of ARGV[3] of a release, each as a variable. Those after the first one may be missing, and the last five.
--
--   publish   PUBLISH or SPUBLISH
--   how       how the process is notified (NotifiedBy)
--   life      ms until it is taken for dead
--   age       µs since the call of the next caller, or 0
--   ttl       ms of the next caller, or 0
--   most      the most tokens that are of use to it, or 0
--   next      its ticket; nil: there is no next caller
--   pause     ms of a pause, or 0
--   interval  ms from one pause to the next, or 0
--   keepFor   ms left of the minHold by the local clock, or 0
--   minHold   of the acquisition in ms, or 0
--   keyTtl    the ttl of the acquisition in ms, or 0
--
-- Sets withholds, too: the last five are there, so that the lock may go to nobody now.
local publish, how, life, age, ttl, most, next, rest = ARGV[3], 'none', 0, 0, 0, 1, '', ''
local pause, interval, keepFor, minHold, keyTtl = 0, 0, 0, 0, 0
if string.find(publish, ' ', 1, true) then
  local words = '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S*)(.*)$'
  publish, how, life, age, ttl, most, next, rest = string.match(publish, words)
end
if next == '' then next = nil end
local withholds = rest ~= ''
if withholds then
  pause, interval, keepFor, minHold, keyTtl = string.match(rest, '^ (%S+) (%S+) (%S+) (%S+) (%S+)$')
  pause, keepFor = tonumber(pause), tonumber(keepFor)
end
