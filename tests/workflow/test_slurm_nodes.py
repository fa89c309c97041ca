"""A training on two nodes of a real Slurm ends as one on a single machine."""

from pathlib import Path

import pytest

from tests.workflow.cluster import LOG, MODEL, TRAIN, run, submitted, training
from tests.workflow.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@pytest.mark.parametrize("profile", ["slurm", "generic"])
def test_a_profile_asks_for_the_nodes_of_a_training_and_their_gpus(
    slurm: Slurm, root: Path, tmp_path: Path, profile: str
) -> None:
    checkout = training(root, tmp_path, nodes=2)
    command = f"{TRAIN} --profile profiles/{profile}"
    # Asked for by hand, as there are none to train on here.
    done = run(slurm, checkout, f"{command} --set-resources train_model:gpu=4")
    assert submitted(slurm, done.said, "%T %D %C") == [["COMPLETED", "2", "2"]]
    assert checkout.read(LOG).count("stopped: ") == 1
    records = (checkout / MODEL).with_name("training.json")
    assert '"workers": 2' in records.read_text()
