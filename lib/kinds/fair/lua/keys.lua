-- The keys of every script by their names: see scripts.ts.
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
