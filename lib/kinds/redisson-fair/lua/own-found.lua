-- Sets isQueued: the owner has a position.
isQueued = isQueued or other == owner
