"""``convs2s``: its commands, those of one subject in one module."""
