-- How a script begins that gives a lock back: takes the owner, and those of its process before it, out of the queue.
-- @include redisson-fair/prelude
-- @include redisson-fair/remove-stale
if head then
  -- @include redisson-fair/remove-past OWN_POSITION=own-removed
end
