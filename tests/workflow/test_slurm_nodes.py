"""A training on two nodes of a real Slurm is the one of a single machine."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch

from convs2s.config.identity import training_settings
from convs2s.files.tensors import load_tensors
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from tests.support import tiny
from tests.support.together import start
from tests.workflow.cluster import LOG, MODEL, TRAIN, run, submitted, training
from tests.workflow.slurm import Slurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SETTINGS = tiny.settings({"dropout": 0.0}, maximum_epochs=2)

# Python runs this before a command of the package, on every node.
IN_FLOAT64 = """\
import sys
if sys.argv[0] == "-m":
    import torch
    torch.set_default_dtype(torch.float64)
"""


def train_in_float64(job: TrainingJob) -> None:
    """Train, as ``convs2s train`` does but in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        train(job)
    finally:
        torch.set_default_dtype(torch.float32)


def test_two_nodes_with_a_worker_each_make_the_updates_of_one_node(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tiny.prepare(tmp_path / "task")
    one, two, nodes = (
        tiny.job(task, tmp_path / name / "model.safetensors", SETTINGS)
        for name in ("one", "two", "nodes")
    )
    train_in_float64(one)
    start(tmp_path / "meeting", 2, train_in_float64, two)

    (tmp_path / "sitecustomize.py").write_text(IN_FLOAT64)
    (tmp_path / "settings.json").write_text(json.dumps(training_settings(SETTINGS)))
    nodes.output.parent.mkdir()
    files = f"{task} --output {nodes.output} --settings {tmp_path}/settings.json"
    options = "--device cpu --threads 1 --nodes 2"
    command = f"{sys.executable} -m convs2s train {files} {options}"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    log = tmp_path / "job.log"
    sbatch = f"sbatch --wait --nodes=2 --ntasks-per-node=1 --output={log}"
    slurm.ask(f"{sbatch} --wrap '{command}'")

    said = log.read_text()
    assert said.count("epoch   2/2 ") == 1, said  # the first worker alone speaks
    assert '"workers": 2' in (nodes.output.parent / "training.json").read_text()
    alone, beside, apart = (
        load_tensors(next(job.output.parent.glob("state/*/best.safetensors")))[0]
        for job in (one, two, nodes)
    )
    for name, value in alone.items():
        assert not value.is_floating_point() or value.dtype == torch.float64
        torch.testing.assert_close(apart[name], value, rtol=0, atol=1e-6)
        assert torch.equal(apart[name], beside[name])


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
