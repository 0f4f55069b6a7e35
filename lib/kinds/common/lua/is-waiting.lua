-- Whether a process stands in the queue of a lock.
--
-- KEYS[1]  the queue
-- ARGV     how a ticket of that process begins: one text for each form of a ticket
-- READ_QUEUE  the command that reads the queue, with its arguments
-- Returns  1 or 0
for _, ticket in ipairs(redis.call(READ_QUEUE)) do
  for _, beginning in ipairs(ARGV) do
    if string.sub(ticket, 1, #beginning) == beginning then return 1 end
  end
end
return 0
