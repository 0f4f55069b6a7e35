-- Puts own, the ticket of member, into the queue at its position. Sets isMovedBack: another caller has taken the ticket over,
-- which called later.
--
-- Needs  own: nil when it has no ticket yet; arrival; calledFor; ttl; entersFor; released; what lock.lua and queue.lua set
if not own then
  own = { ticket = member, kind = kind }
  queue[#queue + 1] = own
end
-- One that lies ahead is of before the clock was set back. A reader that comes first stays there.
local micros = time[1] * 1000000 + time[2]
if not arrival or arrival > micros then arrival = micros - calledFor end
isMovedBack = own.arrival and 0 < own.arrival and own.arrival < arrival
if own.arrival ~= 0 then own.arrival = arrival end
own.leaseEnd = digits(now + ttl)
sortQueue()
-- A process that gives a permit back goes on with it if those before its caller are served by their own processes.
if kind == 'semaphore' and released == 1 and entersFor == 0 and mayEnter(own) then
  local place = 1
  while queue[place] ~= own and now < tonumber(queue[place].enterUntil or 0) do place = place + 1 end
  if queue[place] == own then table.insert(queue, 1, table.remove(queue, place)) end
end
