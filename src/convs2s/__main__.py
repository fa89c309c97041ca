"""``python -m convs2s`` is the command ``convs2s``."""

from convs2s.cli.main import main

main()
