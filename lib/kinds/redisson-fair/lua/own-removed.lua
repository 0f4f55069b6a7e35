-- The owner's own position goes too.
isPast = isPast or other == owner
