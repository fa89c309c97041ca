"""What the commands on n-best lists share."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from convs2s.files.text import read_lines
from convs2s.scoring.n_best import MODEL, Group, read_n_best


def add_feature(command: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--feature``; ``meaning`` begins its help."""
    command.add_argument(
        "--feature", default=MODEL, metavar="NAME", help=f"{meaning}, without the = [{MODEL}]"
    )


def read_groups(path: Path) -> Iterator[Group]:
    """Yield the hypotheses of each sentence of a list."""
    return read_n_best(read_lines(path), str(path))
