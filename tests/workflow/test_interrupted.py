"""Ctrl-C while the workflow runs, a second run beside it, and jobs that outlive their Snakemake."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest
import yaml

from tests.support.checkout import Checkout
from tests.support.processes import wait_for

MODEL = "results/mine_en_nl/models/small_plateau/seed2/model.safetensors"
LOG = "results/logs/mine_en_nl/small_plateau/seed2/train.log"


def text(checkout: Checkout, name: str) -> str:
    return (checkout / name).read_text("utf-8")


def start(checkout: Checkout) -> subprocess.Popen[bytes]:
    """Start Snakemake as a terminal does, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", MODEL],
        cwd=checkout.folder,
        stdout=(checkout / "said.txt").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # Where tests run in the background of a shell, what they start would ignore it.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def train(checkout: Checkout) -> subprocess.Popen[bytes]:
    """Start the training, and wait until it has saved a state."""
    process = start(checkout)
    folder = (checkout / MODEL).parent
    saved = "state/*/last.safetensors"
    wait_for(lambda: any(folder.glob(saved)) or process.poll() is not None)
    assert process.poll() is None, text(checkout, "said.txt")
    return process


@pytest.mark.slow
def test_ctrl_c_ends_all_and_the_same_command_resumes_after_jobs_that_are_left(
    finished: Checkout,
) -> None:
    options = yaml.safe_load(text(finished, "config.local.yaml"))
    often = {"maximum_epochs": 4000, "checkpoint_minutes": 0.01}
    options["overrides"]["models"]["small_plateau"]["training"] |= often
    finished.configure(options)
    process = train(finished)
    (error,) = finished.snakemake(MODEL).errors
    assert f"another snakemake runs here (process {process.pid} on " in error
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(300) != 0
    assert "training is not finished" in text(finished, LOG)
    assert not (finished / MODEL).exists()
    process = train(finished)
    wait_for(lambda: "resuming in epoch" in text(finished, LOG))
    process.kill()  # Snakemake alone
    process.wait()
    again = start(finished)
    waits = "waiting for jobs of an earlier run in this folder"
    wait_for(lambda: waits in text(finished, "said.txt"))
    assert again.poll() is None
    os.killpg(process.pid, signal.SIGTERM)  # the training saves its state and ends
    wait_for(lambda: "all have ended" in text(finished, "said.txt"))
    os.killpg(again.pid, signal.SIGINT)
    assert again.wait(300) != 0
