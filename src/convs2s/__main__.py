"""Run the command ``convs2s`` by ``python -m convs2s``."""

from convs2s.cli.main import main

main()
