"""Small tasks that have to be learned to a stated score, as a user types it."""
