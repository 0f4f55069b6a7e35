-- Another error than that of a key of another type, which is another owner's, is the script's reply.
--
-- Needs  found, an error
if not string.find(found.err, 'WRONG_TYPE', 1, true) then return found end
state = 'stolen'
