"""Two runs of the task of words, whose alignment decides what stands for unknown ones."""

from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support.checkout import Checkout, check_out

TASK = "results/demo_en_fr_word"


@pytest.fixture
def checkouts(root: Path, tmp_path: Path) -> list[Checkout]:
    """Two clones, which differ in the number of cores that a run may take."""
    return [check_out(root, tmp_path / name) for name in ("first", "second")]


def holds_seconds(name: str) -> bool:
    """Return whether a file tells how long a training took."""
    return name.endswith("/history.jsonl") or "/state/" in name


@pytest.mark.slow
def test_two_runs_give_the_same_bytes_everywhere(checkouts: list[Checkout]) -> None:
    found = []
    for cores, checkout in enumerate(checkouts, 1):
        checkout.shell(f"snakemake {TASK}/bleu.txt --cores {cores}").succeeded()
        found.append(
            {name: sha256(checkout / name) for name in checkout.files("results")}
        )
    assert found[0].keys() == found[1].keys()
    differing = [name for name in found[0] if found[0][name] != found[1][name]]
    assert [name for name in differing if not holds_seconds(name)] == []
