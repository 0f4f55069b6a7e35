/**
 * Who may enter a semaphore or a read/write lock. In Lua: part of each script that acquires or releases.
 *
 * `front`: tickets in front, of which `writers` are for writing. A ticket in front counts as if it had entered: so
 * nobody overtakes. After READ_QUEUE, and when the leases that have ended were removed.
 */
export const ENTRY_RULE = `
local holders = redis.call('ZCARD', lock)
local first = redis.call('ZRANGE', lock, 0, 0)[1]
local isWritten = first and string.sub(first, 1, 6) == 'write:'
local function mayEnter(as, front, writers)
  if as == 'semaphore' then return holders + front < (permits or 1) end
  if as == 'read' then return not isWritten and writers == 0 end
  return holders + front == 0
end`;
