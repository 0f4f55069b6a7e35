-- Sets rest: a text without its UTF-8. What it has from byte 128 up is none.
--
-- TEXT_VALUE  the text
local rest = TEXT_VALUE
for _, sequence in ipairs({
  '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
  '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
  '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]'
}) do
  rest = string.gsub(rest, sequence, '.')
end
