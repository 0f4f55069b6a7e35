-- Does what release does, but the lock is left to pollers: all waiters are asked to make no attempt.
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
-- Returns  what release returns
-- @include redisson-fair/leave-queue
local state
-- @include redisson/held
if state == 'stolen' then return -1 end
local reply = 0
if not state then
  -- @include common/delete DELETE_COMMAND=ARGV[6] DELETED_KEYS=KEYS[1]
  local listeners = 0
  for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    -- @include redisson/publish-on PUBLISH_COMMAND=ARGV[4] ON_CHANNEL="ARGV[5] .. ':' .. waiter" MESSAGE_TEXT=MESSAGE_LEFT
    listeners = heard
  end
  do
    -- @include common/return-with-listeners FOUND_STATE=deleted FOUND_LISTENERS=listeners
  end
  reply = deleted
end
-- @include redisson-fair/notify-first FIRST_WORD=ARGV[4] SECOND_WORD=ARGV[5]
-- @include common/return-with-listeners FOUND_STATE=reply FOUND_LISTENERS=listeners
