-- Confirms a hold for the next caller of its process. With listeners of our own, releases it if there are others, or the
-- mark of another process that waits.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- KEYS[#]  the last one, with ARGV[4]: the mark of a process that waits
-- ARGV[1]  the owner
-- ARGV[2]  ttl in ms
-- ARGV[3]  the most tokens that are of use, '' without fencing; it may be missing, and what follows
-- ARGV[4]  listeners of our own; it may be missing, and what follows
-- ARGV[5]  who leaves our marks
-- ARGV[6]  the command that deletes
-- ARGV[7]  and more: the notification
-- Returns  1, or with a fence the next tokens: the key is the owner's, and lives for the ttl at least
--          else { 1: deleted, 2: by DEL, 0: no key, -1: another owner's; listeners [; the head start of a waiter in ms, or
--          0] }
-- @include common/examine
if state then return { state == 'expired' and 0 or -1, 0 } end
local ttl, most, ownListeners = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
-- @include THIS_KIND/before-tokens
if ownListeners then
  local mark = redis.pcall('GET', KEYS[#KEYS])
  local waiter, headStart = string.match(type(mark) == 'string' and mark or '', '^(.*) (%d+)$')
  local isWanted = waiter and waiter ~= ARGV[5]
  -- @include THIS_KIND/publish FIRST_WORD=ARGV[7] SECOND_WORD=ARGV[8]
  -- Where the number of listeners is not known, others may listen.
  if heard < 0 or heard > ownListeners or isWanted then
    -- @include common/delete DELETE_COMMAND=ARGV[6] DELETED_KEYS=KEYS[1]
    return { deleted, heard, isWanted and tonumber(headStart) or 0 }
  end
end
-- Out of memory: see script-parts.ts.
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
-- @include THIS_KIND/tokens
