-- The end of a script that gives a lock back.
--
-- FOUND  what it found
-- HEARD  the connections that got its message
if HEARD == 0 then return FOUND end
return { FOUND, HEARD }
