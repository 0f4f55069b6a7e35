-- Makes of shown, a member, a text without spaces: they separate the members in a reply.
-- @include common/readable READ_VALUE=shown
shown = string.gsub(shown, '%s', function(space) return string.format('{%02x}', string.byte(space)) end)
