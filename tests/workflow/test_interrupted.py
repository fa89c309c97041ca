"""Ctrl-C while the workflow runs, a second run beside it, and jobs that outlive their Snakemake."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.checkout import Checkout
from tests.support.processes import wait_for

MODEL = "results/mine_en_nl/models/small/seed2/model.safetensors"
LOG = "results/logs/mine_en_nl/small/seed2/train.log"

# Each trains, and waits for what it has ended, for a minute.
pytestmark = pytest.mark.slow


def start(checkout: Checkout, target: str) -> subprocess.Popen[bytes]:
    """Start Snakemake as a terminal does, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", target],
        cwd=checkout.folder,
        stdout=(checkout / "said.txt").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # Where tests run in the background of a shell, what they start would ignore it.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def saved(checkout: Checkout) -> list[Path]:
    return [*(checkout / MODEL).parent.glob("state/*/last.safetensors")]


@pytest.fixture
def long(finished: Checkout) -> Checkout:
    """The own pair, with a training of minutes that saves its state often."""
    options = yaml.safe_load((finished / "config.local.yaml").read_text("utf-8"))
    often = {"maximum_epochs": 4000, "checkpoint_minutes": 0.01}
    options["overrides"]["models"]["small"]["training"] |= often
    finished.configure(options)
    return finished


def train(checkout: Checkout) -> subprocess.Popen[bytes]:
    """Start the training, and wait until it has saved a state."""
    process = start(checkout, MODEL)
    wait_for(lambda: bool(saved(checkout)) or process.poll() is not None)
    assert process.poll() is None, (checkout / "said.txt").read_text("utf-8")
    return process


def test_ctrl_c_ends_all_within_seconds_and_the_same_command_resumes(
    long: Checkout,
) -> None:
    process = train(long)
    second = long.snakemake(MODEL)
    assert second.code == 1
    (error,) = second.errors
    assert f"another snakemake runs here (process {process.pid} on " in error
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(300) != 0
    assert "training is not finished" in (long / LOG).read_text("utf-8")
    assert not (long / MODEL).exists()
    again = train(long)
    wait_for(lambda: "resuming in epoch" in (long / LOG).read_text("utf-8"))
    os.killpg(again.pid, signal.SIGINT)
    again.wait(300)


def test_a_rerun_waits_for_the_jobs_that_outlive_a_killed_snakemake(
    long: Checkout,
) -> None:
    process = train(long)
    process.kill()  # Snakemake alone
    process.wait()
    again = start(long, MODEL)
    said = long / "said.txt"
    wait_for(
        lambda: (
            "waiting for jobs of an earlier run in this folder"
            in said.read_text("utf-8")
        )
    )
    assert again.poll() is None
    os.killpg(process.pid, signal.SIGTERM)  # the training saves its state and ends
    wait_for(lambda: "resuming in epoch" in (long / LOG).read_text("utf-8"))
    os.killpg(again.pid, signal.SIGINT)
    assert again.wait(300) != 0
