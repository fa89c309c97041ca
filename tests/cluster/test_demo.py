"""The demo from end to end on a real Slurm, by each command of docs/cluster.md as typed there."""

import json
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support import cluster
from tests.support.checkout import check_out
from tests.support.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

DEMO = "results/demo_en_fr"


def test_both_commands_make_the_same_demo(slurm: Slurm, root: Path, tmp_path: Path) -> None:
    made = []
    for option in ("--profile", "--workflow-profile"):
        checkout = check_out(root, tmp_path / option.strip("-"))
        cluster.set_up_profiles(checkout.folder)
        done = cluster.run(slurm, checkout, f"snakemake demo {option} profiles/slurm")
        assert done.said.count("has been submitted with SLURM jobid") > 30
        scores = json.loads((checkout / f"{DEMO}/bleu.json").read_text())["tests"]["test"]
        assert scores["bleu"]["detokenized"]["mean"] > 85
        models = checkout.folder.glob(f"{DEMO}/models/demo/*/*.safetensors")
        made.append({path.parent.name: sha256(path) for path in models})
    assert made[0] == made[1]
    assert made[0].keys() == {"seed1", "seed2"}
