"""The demo, killed again and again, ends with the bytes of an undisturbed run."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from tests.support.checkout import Checkout, check_out

TASK = "results/demo_en_fr"
PREPARED = [
    f"{TASK}/{path}"
    for path in (
        "dataset/train.arrow",
        "dataset/valid.arrow",
        "alignment/dictionary.tsv",
    )
]
MODEL = f"{TASK}/models/demo/seed1/model.safetensors"
HISTORY = f"{TASK}/models/demo/seed1/history.jsonl"
SECONDS_BETWEEN_STATES = 1
EPOCHS = 14  # more than five tries need that end within a second after an epoch


def start(checkout: Checkout, *targets: str) -> subprocess.Popen[bytes]:
    """Start the workflow in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", *targets],
        cwd=checkout.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a workflow with all of its jobs."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def epochs(checkout: Checkout) -> int:
    """How many epochs have been trained, in all tries together."""
    history = checkout / HISTORY
    return history.read_text().count("\n") if history.is_file() else 0


def kill_while_training(checkout: Checkout, after: float) -> None:
    """Start the workflow, and kill all of it a while after its training has ended an epoch more."""
    before = epochs(checkout)
    process = start(checkout, MODEL)
    while epochs(checkout) <= before:
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(after)
    kill(process)


def kill_while_preparing(checkout: Checkout, after: float) -> bool:
    """Start the preparation and kill it after a while; tell whether it was still at work."""
    process = start(checkout, *PREPARED)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        kill(process)
        return True
    assert process.returncode == 0
    return False


def prepared(checkout: Checkout) -> dict[str, str]:
    """The checksums of all that the preparation has made, by name.

    Hidden files are what a killed job has half written, and its notes. The aligner goes on from its
    state, a folder that goes when the alignment is there.
    """
    names = checkout.files(TASK) if (checkout / TASK).exists() else []
    whole = (name for name in names if "/." not in name and ".state/" not in name)
    return {name: sha256(checkout / name) for name in whole}


@pytest.mark.slow
def test_a_preparation_killed_twenty_times_has_the_same_bytes(
    root: Path, tmp_path: Path
) -> None:
    checkout = check_out(root, tmp_path)
    checkout.configure({"scatter_above": 0})  # prepared in parts, as a large corpus
    killed = checkout.copy(tmp_path / "killed")
    checkout.snakemake("--notemp", *PREPARED).succeeded()
    whole = prepared(checkout)

    moments, kills = random.Random(3), 0
    while kills < 20:
        if kill_while_preparing(killed, moments.uniform(1, 15)):
            kills += 1
            # A file that has its name is complete, at any moment.
            assert prepared(killed).items() <= whole.items()
        else:
            assert prepared(killed).items() <= whole.items()
            shutil.rmtree(killed / "results")
    killed.snakemake(*PREPARED).succeeded()
    made = prepared(killed)
    assert made.items() <= whole.items()
    assert made.keys() >= {
        *PREPARED,
        f"{TASK}/alignment/links",
        f"{TASK}/alignment/candidates.tsv",
    }


@pytest.mark.slow
def test_the_demo_killed_five_times_has_the_same_model(
    root: Path, tmp_path: Path
) -> None:
    checkout = check_out(root, tmp_path)
    training = {
        "checkpoint_minutes": SECONDS_BETWEEN_STATES / 60,
        "maximum_epochs": EPOCHS,
    }
    overrides = {"models": {"demo": {"training": training}}}
    checkout.configure({"device": "cpu", "overrides": overrides})
    checkout.snakemake("results/demo_en_fr/dataset/train.arrow").succeeded()
    killed = checkout.copy(tmp_path / "killed")
    checkout.snakemake(MODEL).succeeded()

    moments = random.Random(2)
    for _ in range(5):
        kill_while_training(killed, moments.uniform(0, 1))
        assert not (killed / MODEL).exists()
    killed.snakemake(MODEL).succeeded()
    assert (
        "resuming in epoch"
        in (killed / "results/logs/demo_en_fr/demo/seed1/train.log").read_text()
    )
    assert sha256(killed / MODEL) == sha256(checkout / MODEL)
