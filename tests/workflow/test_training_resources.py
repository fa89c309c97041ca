"""What a training is told of its job, and the memory of jobs by what they load."""

import os
import re

import pytest

from tests.support.checkout import Checkout

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "--workers 0 --nodes 1"),  # as many as GPUs that are granted
        (["--resources", "gpu=2"], "--workers 0 --nodes 1"),
        (["--config", "gpus=2"], "--workers 2 --nodes 1"),
        (["--config", "nodes=2", "gpus=4"], "--workers 4 --nodes 2"),
        (["--config", "device=cpu"], "--workers 1 --nodes 1 --device cpu"),
        (["--set-resources", "train_model:runtime=90"], "--time-limit 90 "),
        (["--set-threads", "train_model=1"], "--cpus 1 "),
    ],
)
def test_a_training_is_told_what_its_job_has(
    checkout: Checkout, options: list[str], expected: str
) -> None:
    done = checkout.snakemake(
        "--dry-run", "--printshellcmds", *options, "--", MODEL
    ).succeeded()
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
            {
                "ensemble2/test.beam5.jsonl": 4000,
                "ensemble2/test.beam5.cpu.speed.json": 13_000,
            },
        ),
    ],
)
def test_a_job_on_a_cpu_asks_for_the_memory_of_all_models_that_it_loads(
    checkout: Checkout, device: str, megabytes: dict[str, int]
) -> None:
    runs = MODEL.removesuffix("seed1/model.safetensors")
    for seed, size in ((1, 2000 << 20), (2, 2000 << 20), (3, 1)):
        # Sparse.
        os.truncate(checkout.write(f"{runs}seed{seed}/model.safetensors", b""), size)
    checkout.write(f"{runs}seed3/test.beam5.nbest.zst", b"")
    for stage in ("raw", "tok"):
        checkout.write(f"results/demo_en_fr/corpus/{stage}/test.source.zst", b"")
    rules = ["--allowed-rules", "decode_test_set", "time_decoding", "score_n_best"]
    options = ["--dry-run", *rules, "--config", f"device={device}"]
    done = checkout.snakemake(*options, "--", *(runs + name for name in megabytes))
    jobs = re.findall(rf"output: {runs}([^\s,]+).*?mem_mb=(\d+),", done.said, re.DOTALL)
    assert {name: int(asked) for name, asked in jobs} == megabytes, done.said
