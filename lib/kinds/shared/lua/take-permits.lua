-- Of two numbers of permits, the one that was given last counts: that in Redis, or that of this attempt. Sets permits and
-- givenAt to it, stored to the one in Redis, and isGiven: it is that of this attempt.
--
-- Needs  given; givenFor; laterBy; now; what queue.lua sets
local stored = permits
-- A time to come is from before the clock was set back.
local isGiven = not stored or laterBy and (now - givenFor - laterBy >= givenAt or givenAt > now)
if isGiven then permits, givenAt = given, now - givenFor end
