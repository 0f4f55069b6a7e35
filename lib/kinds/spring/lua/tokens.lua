-- Returns the next fencing tokens, or 1 without fencing.
--
-- Needs  most; what before-tokens reads
if not most then return 1 end
-- @include common/mint-block FENCE=KEYS[2] MOST=most
