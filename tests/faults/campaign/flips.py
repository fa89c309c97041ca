"""Flipped bits in every kind of file that one step leaves for the next.

Each flip is followed by the step that reads the file: it must refuse the file, or make the very
same of it as of the sound one.
"""

import os
import random
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import torch

from tests.faults.campaign.readers import readers
from tests.support.damage import flipped

FLIPS = 1000


def run(flips: int, folder: Path) -> dict[str, Counter[str]]:
    """Flip so many bits in all; return what became of them in each kind of file."""
    torch.set_num_threads(1)
    draw = random.Random(1)
    found: dict[str, Counter[str]] = {}
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        guarded = [reader for reader in readers(folder) if reader.is_guarded]
        for reader in guarded:
            count = found.setdefault(
                f"{reader.path.parent.name}/{reader.path.name}", Counter()
            )
            content = reader.path.read_bytes()
            sound = reader.outcome()
            assert sound[0] is None, sound
            for _ in range(-(-flips // len(guarded))):
                bit = draw.randrange(8 * len(content))
                reader.path.write_bytes(flipped(content, bit))
                refused, made = reader.outcome()
                same = "harmless" if made == sound[1] else "silent"
                count["noticed" if refused else same] += 1
            reader.path.write_bytes(content)
    return found


def main() -> None:
    """Print a line for each kind; exit with 1 where a flip changed a result silently."""
    with tempfile.TemporaryDirectory() as folder:
        found = run(FLIPS, Path(folder))
    for name, count in found.items():
        print(f"{name:30} {dict(count)}")
    whole: Counter[str] = sum(found.values(), Counter())
    print(f"flips: {whole.total()} bits: {dict(whole)}")
    sys.exit(1 if whole["silent"] else 0)


if __name__ == "__main__":
    main()
