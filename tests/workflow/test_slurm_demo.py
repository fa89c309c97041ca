"""The demo from end to end on a real Slurm, by the command of docs/cluster.md, on CPUs."""

import json
from pathlib import Path

import pytest

from tests.support.checkout import check_out
from tests.workflow import cluster
from tests.workflow.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


def test_the_demo_is_learned_in_few_submissions_though_a_node_fails(
    slurm: Slurm, root: Path, tmp_path: Path
) -> None:
    checkout = check_out(root, tmp_path)
    cluster.set_up_profiles(checkout.folder)
    command = "snakemake demo --config device=cpu --workflow-profile profiles/slurm"
    with cluster.running(slurm, checkout, command) as run:
        cluster.lose_a_node(run)
        said = run.ends()
    states = [state for (state,) in cluster.submitted(slurm, said, "%T")]
    assert {*states} == {"COMPLETED"}
    assert len(states) < 15  # of 25 jobs
    results = checkout / "results"
    logs = results.glob("logs/demo_en_fr/demo/*/train.log")
    assert any("resuming in epoch " in log.read_text() for log in logs)
    scores = json.loads((results / "demo_en_fr/bleu.json").read_text())["tests"]
    assert scores["test"]["bleu"]["detokenized"]["mean"] > 85
