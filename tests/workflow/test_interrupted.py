"""Ctrl-C while the workflow runs, a second run beside it, and jobs that outlive their Snakemake."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from tests.support.checkout import Checkout
from tests.support.processes import wait_for
from tests.workflow.changes import override

MODEL = "results/mine_en_nl/models/small_plateau/seed2/model.safetensors"


@pytest.mark.slow
def test_ctrl_c_ends_all_and_the_same_command_resumes_after_jobs_that_are_left(
    finished: Checkout,
) -> None:
    often = {"maximum_epochs": 4000, "checkpoint_minutes": 0.01}
    override(finished, "models", "small_plateau", training=often)
    said = finished / "said.txt"
    log = finished / "results/logs/mine_en_nl/small_plateau/seed2/train.log"

    def start() -> subprocess.Popen[bytes]:
        """Start Snakemake as a terminal does, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "2", MODEL],
            cwd=finished.folder,
            stdout=said.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Where tests run in the background of a shell, what they start would ignore it.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )

    def train() -> subprocess.Popen[bytes]:
        """Start the training, and wait until it has saved a state."""
        process = start()
        states = (finished / MODEL).parent
        saved = "state/*/last.safetensors"
        wait_for(lambda: any(states.glob(saved)) or process.poll() is not None)
        assert process.poll() is None, said.read_text()
        return process

    process = train()
    (error,) = finished.snakemake(MODEL).errors
    assert f"another snakemake runs here (process {process.pid} on " in error
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(300) != 0
    assert "training is not finished" in log.read_text()
    assert not (finished / MODEL).exists()
    process = train()
    wait_for(lambda: "resuming in epoch" in log.read_text())
    process.kill()  # Snakemake alone
    process.wait()
    again = start()
    waits = "waiting for jobs of an earlier run in this folder"
    wait_for(lambda: waits in said.read_text())
    assert again.poll() is None
    os.killpg(process.pid, signal.SIGTERM)  # the training saves its state and ends
    wait_for(lambda: "all have ended" in said.read_text())
    os.killpg(again.pid, signal.SIGINT)
    assert again.wait(300) != 0
