-- Makes text of a value that another program may have written: some clients reject a reply that is no UTF-8, and others
-- replace what they cannot read. What is no text has each of its bytes from 128 up, and each opening brace, as two hex
-- digits in braces. An owner value of this library has no braces, and stays as it is. Two values never become one text,
-- but where they are long: then it is how they begin, without a part of a character, and how many more bytes they have.
-- It may be any data of an application, and to read megabytes would hold up the server for seconds.
--
-- READ_VALUE  the variable with the value, or with nil or false
local omitted = READ_VALUE and #READ_VALUE > MOST_SHOWN and #READ_VALUE
if omitted then
  READ_VALUE = string.gsub(string.sub(READ_VALUE, 1, MOST_SHOWN), '[\194-\244][\128-\191]*$', '')
  omitted = '{+' .. omitted - #READ_VALUE .. '}'
end
if READ_VALUE and string.find(READ_VALUE, '[{\128-\255]') then
  -- @include common/without-text TEXT_VALUE=READ_VALUE
  if string.find(rest, '[\128-\255]') or string.find(READ_VALUE, '{%x%x}') then
    READ_VALUE = string.gsub(READ_VALUE, '[{\128-\255]', function(byte) return string.format('{%02x}', string.byte(byte)) end)
  end
end
if omitted then READ_VALUE = READ_VALUE .. omitted end
