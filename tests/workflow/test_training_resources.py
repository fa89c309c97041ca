"""The workers and time limit of a training follow from its grant, memory from what is loaded."""

import os
import re

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
        (
            [*IN_A_JOB, "--config", "nodes=2", "gpus=4"],
            "0,1",
            "--nodes 2 --workers 2 --time-limit 1440 2>&1",
        ),
        # Of a whole node, Slurm grants more than were asked for.
        ([*IN_A_JOB, "--config", "gpus=4"], "0,1,2,3,4,5,6,7", "--workers 4 --time-limit"),
        ([*IN_A_JOB], "0,1,2,3,4,5,6,7", "--workers 1 --time-limit"),
        (
            [
                *IN_A_JOB,
                "--set-resources",
                "train_model:runtime=90",
                "--config",
                "nodes=2",
                "gpus=3",
            ],
            "",
            "--nodes 2 --workers 3 --time-limit 90 2>&1",
        ),
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
    done = checkout.snakemake("--dry-run", "--printshellcmds", *options, "--", MODEL).succeeded()
    (command,) = (line for line in done.said.splitlines() if "convs2s train" in line)
    assert expected in command


@pytest.mark.parametrize(
    ("device", "megabytes"),
    [
        (
            "cpu",
            {
                "ensemble2/test.beam5.jsonl": 13_000,
                "seed3/test.beam5.jsonl": 4000,
                "seed3/test.beam5.scored-by-demo-ensemble2.nbest.zst": 13_000,
            },
        ),
        (
            "auto",
            {"ensemble2/test.beam5.jsonl": 4000, "ensemble2/test.beam5.cpu.speed.json": 13_000},
        ),
    ],
)
def test_a_job_on_a_cpu_asks_for_the_memory_of_all_models_that_it_loads(
    checkout: Checkout, device: str, megabytes: dict[str, int]
) -> None:
    runs = MODEL.removesuffix("seed1/model.safetensors")
    for seed, size in ((1, 2000 << 20), (2, 2000 << 20), (3, 1)):
        os.truncate(checkout.write(f"{runs}seed{seed}/model.safetensors", b""), size)  # sparse
    checkout.write(f"{runs}seed3/test.beam5.nbest.zst", b"")
    for stage in ("raw", "tok"):
        checkout.write(f"results/demo_en_fr/corpus/{stage}/test.source.zst", b"")
    rules = ["--allowed-rules", "decode_test_set", "time_decoding", "score_n_best"]
    options = ["--dry-run", *rules, "--config", f"device={device}"]
    done = checkout.snakemake(*options, "--", *(runs + name for name in megabytes))
    jobs = re.findall(rf"output: {runs}([^\s,]+).*?mem_mb=(\d+),", done.said, re.DOTALL)
    assert {name: int(asked) for name, asked in jobs} == megabytes, done.said
