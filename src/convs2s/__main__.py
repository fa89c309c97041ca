"""``python -m convs2s`` is the command ``convs2s``."""

from convs2s.cli import main

main()
