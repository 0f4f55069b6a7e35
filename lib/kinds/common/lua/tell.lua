-- Tells the processes that had a lock that it was taken from them. Sets told: how many heard it; words: the index of the last
-- argument that this took. pcall: else a user without rights on channels could not unlock by force.
--
-- ARGV[3]  twice the number of messages
-- ARGV[4]  and more: for each message an inbox, and what to say; after them, how the waiters are notified
local told, words = 0, 3 + ARGV[3]
for i = 4, words, 2 do
  local heard = redis.pcall('PUBLISH', ARGV[i], ARGV[i + 1])
  if type(heard) == 'number' then told = told + heard end
end
