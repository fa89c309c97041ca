"""Flipped bits in every kind of file that one step leaves for the next.

Each flip is followed by the step that reads the file: it must refuse the file, or make the very
same of it as of the sound one.
"""

import random
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import torch

from tests.faults.campaign.readers import readers
from tests.support.archives import flipped


def run(flips: int) -> Counter[str]:
    """Flip so many bits in all; print and return how many were noticed, harmless or neither."""
    torch.set_num_threads(1)
    draw = random.Random(1)
    whole: Counter[str] = Counter()
    said = sys.stdout
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        guarded = [one for one in readers(Path(folder)) if one.is_guarded]
        for reader in guarded:
            counts: Counter[str] = Counter()
            content = reader.path.read_bytes()
            refused, sound = reader.outcome()
            assert refused is None, refused
            for _ in range(-(-flips // len(guarded))):
                bit = draw.randrange(8 * len(content))
                reader.path.write_bytes(flipped(content, bit))
                refused, made = reader.outcome()
                silent = "harmless" if made == sound else "faults"
                counts["noticed" if refused else silent] += 1
            reader.path.write_bytes(content)
            print(f"{reader.name:30} {dict(counts)}", file=said)
            whole += counts
    print(f"flips: {whole.total()} bits: {dict(whole)}")
    return whole
