"""Two runs of the task of words, whose alignment decides what stands for unknown ones."""

from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support.checkout import check_out

TASK = "results/demo_en_fr_word"


@pytest.mark.slow
def test_two_runs_give_the_same_bytes_everywhere(root: Path, tmp_path: Path) -> None:
    """On other numbers of cores, but for the files that tell how long a training took."""
    found: list[dict[str, str]] = []
    for cores in (1, 2):
        checkout = check_out(root, tmp_path / str(cores))
        checkout.shell(f"snakemake {TASK}/bleu.txt --cores {cores}").succeeded()
        found.append({})
        for name in checkout.files("results"):
            if not name.endswith("/history.jsonl") and "/state/" not in name:
                found[-1][name] = sha256(checkout / name)
    assert found[0] == found[1]
