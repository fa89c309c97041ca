"""The benchmarks that this machine cannot run in full stay runnable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch


def run(root: Path, *arguments: str, script: str = "gpu.py") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(root / "benchmarks" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_gpus_benchmark_runs_in_the_small_on_a_cpu(root: Path) -> None:
    done = run(root, "--device", "cpu", "--tiny")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["training tiny eager"]["tokens_per_second"] > 0
    assert figures["table 3, beam 5"]["sentences"] == 2
    assert figures["multi30k"] == "not run" or figures["multi30k"]["best_epoch"] == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_it_says_so_in_one_line(root: Path) -> None:
    done = run(root)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "this machine has no CUDA device" in done.stderr


@pytest.mark.slow
def test_the_lstms_benchmark_prints_its_speed_beside_the_kernels(root: Path) -> None:
    done = run(root, "--updates", "1", "--precision", "fp32", script="lstm.py")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["bare_tokens_per_second"] > figures["update_tokens_per_second"] > 0
    assert 0 < figures["update_of_bare"] < 1
