"""The workers and the time limit of a training follow from what its job is granted."""

import pytest

from tests.support.checkout import Checkout

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"
IN_A_JOB = ["--mode", "remote"]


@pytest.mark.parametrize(
    ("options", "granted", "expected"),
    [
        (["--resources", "gpu=2"], "", "--workers 2 2>&1"),
        (["--resources", "gpu=1", "--config", "gpus=2"], "", "--workers 1 2>&1"),
        (["--resources", "gpu=2", "--config", "gpus=1"], "", "--workers 1 2>&1"),
        (["--config", "device=cpu"], "", "--workers 0 2>&1"),
        ([*IN_A_JOB, "--config", "gpus=4"], "0,1", "--workers 2 --time-limit 1440 2>&1"),
        ([*IN_A_JOB, "--config", "nodes=2"], "0,1", "--nodes 2 --workers 2 --time"),
        ([*IN_A_JOB, "--config", "nodes=2", "gpus=3"], "", "--nodes 2 --workers 3 --time"),
        ([*IN_A_JOB, "--set-resources", "train_model:runtime=90"], "", "1 --time-limit 90 2>&1"),
    ],
)
def test_the_rule_starts_as_many_workers_as_it_has_gpus(
    checkout: Checkout,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    granted: str,
    expected: str,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", granted)
    done = checkout.snakemake("--dry-run", "--printshellcmds", *options, "--", MODEL)
    assert done.code == 0, done.said
    (command,) = (line for line in done.said.splitlines() if "convs2s train" in line)
    assert expected in command
