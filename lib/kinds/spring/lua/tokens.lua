-- Returns the next fencing tokens, or 1 without fencing.
--
-- Needs  most; what before-tokens reads
if not most then return 1 end
-- @include common/mint-block FENCE_KEY=KEYS[2] MOST_TOKENS=most
