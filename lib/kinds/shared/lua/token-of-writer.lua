-- With a fence, sets granted to the token of a writer that has entered. One that had the lock already has the last token.
--
-- KEYS[3]  fence
-- Needs    score: when its lease was to end before this script, if it had one
if KEYS[3] then
  local last = redis.call('GET', KEYS[3])
  if score and tonumber(last) then
    granted = last
  else
    granted = (function()
      -- @include common/mint FENCE_KEY=KEYS[3]
    end)()
  end
end
