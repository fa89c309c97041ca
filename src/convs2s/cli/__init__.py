"""``convs2s``: one file for each command."""
