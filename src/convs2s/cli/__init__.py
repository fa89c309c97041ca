"""The commands of ``convs2s``; each module holds the commands of one subject."""
