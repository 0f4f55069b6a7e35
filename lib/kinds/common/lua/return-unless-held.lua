-- Needs  state: see the held.lua of a kind
if state then return state == 'expired' and 0 or -1 end
