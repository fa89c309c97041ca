"""The demo from end to end on a real Slurm, by each command of docs/cluster.md, on CPUs."""

from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support.checkout import Checkout
from tests.workflow import cluster
from tests.workflow.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

DEMO = "results/demo_en_fr"


def models(checkout: Checkout) -> dict[str, str]:
    """The checksum of each seed's model; the demo has its score."""
    scores = checkout.json(f"{DEMO}/bleu.json")["tests"]["test"]
    assert scores["bleu"]["detokenized"]["mean"] > 85
    files = checkout.folder.glob(f"{DEMO}/models/demo/*/*.safetensors")
    return {path.parent.name: sha256(path) for path in files}


def test_both_commands_make_the_same_demo_also_if_a_node_fails(
    slurm: Slurm, root: Path, tmp_path: Path
) -> None:
    checkout = cluster.check_out_here(root, tmp_path / "undisturbed")
    command = "snakemake demo --config device=cpu --profile profiles/slurm"
    done = cluster.run(slurm, checkout, command)
    assert len(cluster.submitted(slurm, done.said, "%i")) < 15  # of 25 jobs
    undisturbed = models(checkout)
    assert undisturbed.keys() == {"seed1", "seed2"}

    checkout = cluster.check_out_here(root, tmp_path / "disturbed")
    command = "snakemake demo --config device=cpu --workflow-profile profiles/slurm"
    with cluster.running(slurm, checkout, command) as run:
        cluster.lose_a_node(run)
        said = run.ends()
    assert {state for (state,) in cluster.submitted(slurm, said, "%T")} == {"COMPLETED"}
    logs = checkout.folder.glob("results/logs/demo_en_fr/demo/*/train.log")
    assert any("resuming in epoch " in log.read_text() for log in logs)
    assert models(checkout) == undisturbed
