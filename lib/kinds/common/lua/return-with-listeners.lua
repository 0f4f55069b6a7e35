-- The end of a script that gives a lock back.
--
-- FOUND_STATE  what it found
-- FOUND_LISTENERS  the connections that got its message
if FOUND_LISTENERS == 0 then return FOUND_STATE end
return { FOUND_STATE, FOUND_LISTENERS }
