-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end
