-- Deletes the lock if it still is the owner's that was inspected, and notifies the waiters. A client may repeat the command
-- whose reply was lost: the lock may be the next owner's by then. Owners are compared by their acquisition, be it granted
-- with a claim window, or kept.
--
-- KEYS[1]  the lock
-- KEYS[2]  and more: as of the inspection
-- ARGV[1]  the owner
-- ARGV[2]  ''
-- ARGV[3]  ''
-- ARGV[4]  and more: how the waiters are notified
-- Returns  1; 0: the lock is not this owner's any more
-- @include THIS_KIND/holder
if not holder or string.gsub(string.gsub(holder, '^KEPT_PREFIX', ''), '@%d+$', '') ~= string.gsub(string.gsub(ARGV[1], '^KEPT_PREFIX', ''), '@%d+$', '') then return 0 end
-- By force: its holder did not ask for this.
-- @include common/delete DELETE_COMMAND='UNLINK' DELETED_KEYS=KEYS[1]
-- @include NOTIFY_PIECE FIRST_WORD=ARGV[4] SECOND_WORD=ARGV[5]
return 1
