-- Makes the lock that of nobody, until its minHold ends. Those that listen are notified as of a release.
--
-- Needs  holder; keepFor, minHold, keyTtl; now; lock
-- ARGV[4]  and more: what publish of spring takes

-- The key of a grant by hand-over may not have its full ttl yet. Its owner value says its age.
local grantedAt = string.match(holder, '@(%d+)$')
-- @include common/left-to-keep KEEP_FOR=keepFor MIN_HOLD=minHold GRANT_AGE="grantedAt and (now - grantedAt) / 1000 or remaining >= 0 and keyTtl - remaining"
redis.call('PEXPIRE', lock, left)
redis.call('SET', lock, 'KEPT_PREFIX' .. holder, 'PX', left)
-- @include spring/publish FIRST_WORD=ARGV[4] SECOND_WORD=ARGV[5]
