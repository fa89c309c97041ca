"""The demo's training, killed again and again, ends with the bytes of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convs2s.files import sha256
from tests.workflow.checkout import Checkout, check_out

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"
SECONDS_BETWEEN_STATES = 3


def kill_while_training(checkout: Checkout, after: float) -> None:
    """Start the workflow, and kill all of it when its training has run for a while."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", MODEL]
    process = subprocess.Popen(
        command,
        cwd=checkout.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    log = checkout / "results/logs/demo_en_fr/demo/seed1/train.log"
    started = time.time()
    while not log.is_file() or log.stat().st_mtime < started:
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_the_demo_killed_five_times_has_the_same_model(root: Path, tmp_path: Path) -> None:
    checkout = check_out(root, tmp_path)
    often = {"demo": {"training": {"checkpoint_minutes": SECONDS_BETWEEN_STATES / 60}}}
    checkout.configure({"device": "cpu", "overrides": {"models": often}})
    assert checkout.snakemake("results/demo_en_fr/dataset/train.arrow").code == 0
    killed = checkout.copy(tmp_path / "killed")
    done = checkout.snakemake(MODEL)
    assert done.code == 0, done.said

    moments = random.Random(2)
    for _ in range(5):
        kill_while_training(killed, moments.uniform(5, 25))
        assert not (killed / MODEL).exists()
    done = killed.snakemake(MODEL)
    assert done.code == 0, done.said
    assert (
        "going on in epoch" in (killed / "results/logs/demo_en_fr/demo/seed1/train.log").read_text()
    )
    assert sha256(killed / MODEL) == sha256(checkout / MODEL)
