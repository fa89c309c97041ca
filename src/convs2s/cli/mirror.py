"""``convs2s mirror``: the miniature mirror, to look at or to serve downloads from."""

import argparse
from pathlib import Path


def add_mirror(command: argparse.ArgumentParser) -> None:
    """Add the options of ``mirror``."""
    command.description = (
        "Write every file that the tasks download as FOLDER/HOST/PATH, of its real name and "
        "format but small and of generated sentences, and their list of checksums, SHA256SUMS."
    )
    command.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go")
    command.set_defaults(run=_mirror, makes_folder="folder")


def _mirror(arguments: argparse.Namespace) -> None:
    from convs2s.mirror.write import write_mirror

    write_mirror(arguments.folder)
