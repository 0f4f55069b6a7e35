-- Releases a lock if it is the owner's, and takes the owner out of the queue. Notifies the first waiter when the lock is
-- free.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the timeouts
-- KEYS[4]  the last token, with fencing
-- ARGV[1]  the owner
-- ARGV[2]  ttl in ms
-- ARGV[3]  wait in ms
-- ARGV[4]  PUBLISH or SPUBLISH
-- ARGV[5]  the channel of the lock
-- ARGV[6]  the command that deletes
-- Returns  1: deleted, 2: by DEL, since the command was refused; 0: no key; -1: the key of another owner; where a waiter is
--          notified { that, listeners }
-- @include redisson-fair/leave-queue
local state
-- @include redisson/held
if state == 'stolen' then return -1 end
local reply = 0
if not state then
  -- @include common/delete DELETE_COMMAND=ARGV[6] DELETED_KEYS=KEYS[1]
  reply = deleted
end
-- @include redisson-fair/notify-first FIRST_WORD=ARGV[4] SECOND_WORD=ARGV[5]
-- @include common/return-with-listeners FOUND_STATE=reply FOUND_LISTENERS=listeners
