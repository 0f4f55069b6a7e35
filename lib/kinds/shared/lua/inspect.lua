-- What a shared lock looks like, for people.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- KEYS[3]  the fence, with fencing
-- ARGV[1]  ''
-- ARGV[2]  ''
-- Reply[1]  the owner whose lease lasts longest, or ''
-- Reply[2]  ms until it ends
-- Reply[3]  the token of a writer, or ''
-- Reply[4]  tickets
-- Reply[5]  leases, or permits that are taken
-- Reply[6]  the members, with spaces between them
-- @include shared/lock
if isForeign(redis.call('ZRANGE', lock, 0, 0)[1]) then return redis.pcall('GET', lock) end
local leases = redis.call('ZRANGEBYSCORE', lock, '(' .. digits(now), '+inf', 'WITHSCORES')
local count = #leases / 2
local holder = count > 0 and string.match(leases[#leases - 1], ':(.*)$')
local remaining = count > 0 and leases[#leases] - now or 0
local isWritten = holder and string.sub(leases[#leases - 1], 1, 6) == 'write:'
local token = isWritten and KEYS[3] and redis.call('GET', KEYS[3]) or ''
if not tonumber(token) then token = '' end
local waiting = redis.call('HLEN', waiters) - redis.call('HEXISTS', waiters, 'permits')
local members = {}
for i = 1, #leases, 2 do
  local shown = leases[i]
  -- @include shared/readable-member
  members[#members + 1] = shown
  count = count + tonumber(string.match(leases[i], '%*(%d+)$') or 1) - 1
end
-- @include common/readable READ_VALUE=holder
return { holder or '', remaining, token, waiting, count, table.concat(members, ' ') }
