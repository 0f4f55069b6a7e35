-- Returns an error where a semaphore is asked for, and the key is that of a read/write lock, or the other way round: by its
-- first holder, or by the first that waits.
--
-- Needs  kind; member; what queue.lua sets
for _, other in ipairs({ firstHolder or member, queue[1] and queue[1].ticket or member }) do
  if (string.sub(other, 1, 10) == 'semaphore:') ~= (kind == 'semaphore') then
    local isHere, isThere = 'a semaphore', 'a read/write lock'
    if kind ~= 'semaphore' then isHere, isThere = isThere, isHere end
    return redis.error_reply('WRONGKIND It is ' .. isThere .. ' in Redis, and it is used as ' .. isHere .. ' here')
  end
end
