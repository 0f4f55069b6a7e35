-- Deletes the lock if it still is the owner's that was inspected, and notifies the waiters. Owners are compared
-- by their acquisition, be it granted with a claim window, or kept.
--
-- KEYS[1]  the lock
-- KEYS[2]  and more: as of the inspection, and the mark
-- ARGV[1]  the owner
-- ARGV[2]  ms for which the mark is kept, or '': there is none
-- ARGV[3]  and more: see tell
-- Returns  { 1, how many heard that it was taken }; 0: no key; -1: the key of another owner
-- @include common/return-if-forced
-- @include THIS_KIND/holder
if not holder then return 0 end
-- @include common/readable READ_VALUE=holder
if string.gsub(string.gsub(holder, '^KEPT_PREFIX', ''), '@%d+$', '') ~= string.gsub(string.gsub(ARGV[1], '^KEPT_PREFIX', ''), '@%d+$', '') then return -1 end
-- By force: its holder did not ask for this.
-- @include common/delete DELETE_COMMAND='UNLINK' DELETED_KEYS=KEYS[1]
-- @include common/tell
-- @include common/note-forced
-- @include NOTIFY_PIECE FIRST_WORD="ARGV[words + 1]" SECOND_WORD="ARGV[words + 2]"
return { 1, told }
