"""Writes the mirror into a folder, with the checksums of its files."""

import hashlib
from pathlib import Path

from convs2s.download.download import CHECKSUM_LIST
from convs2s.files.atomic import atomic_path
from convs2s.files.text import write_lines
from convs2s.mirror.contents import mirror_files
from convs2s.mirror.sentences import draw_sentences


def write_mirror(folder: Path) -> None:
    """Write every file of the mirror as FOLDER/HOST/PATH, and their list of checksums last.

    The bytes are the same each time: all chance is ``random.Random``'s, and no file holds a date.
    """
    files = mirror_files(draw_sentences())
    for place, content in files.items():
        with atomic_path(folder / place) as path:
            path.write_bytes(content)
    digests = {place: hashlib.sha256(content).hexdigest() for place, content in files.items()}
    lines = [f"{digest}  {place}" for place, digest in sorted(digests.items())]
    write_lines(folder / CHECKSUM_LIST, lines)
