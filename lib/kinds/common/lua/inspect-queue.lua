-- What a lock with a queue looks like, for people.
--
-- KEYS[1]  the lock
-- KEYS[2]  its queue
-- KEYS[3]  another key of the queue
-- KEYS[4]  the fence, with fencing
-- QUEUE_LENGTH  the command that counts the queue
-- Returns  { owner or '', remaining ms of its key, last token or '', how many wait }
-- @include THIS_KIND/holder
-- @include common/readable READ_VALUE=holder
local remaining = holder and redis.call('PTTL', KEYS[1]) or 0
local waiting = -1
waiting = redis.call('QUEUE_LENGTH', KEYS[2])
local fence = KEYS[4]
local token = holder and fence and redis.call('GET', fence) or ''
if not tonumber(token) then token = '' end
return { holder or '', remaining, token, waiting }
