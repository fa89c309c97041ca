"""When a training stops by the clock, or by a signal to its whole process group."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from snakemake.utils import format as formatted

from convs2s.pipeline.process import logged
from convs2s.training.interruption import Interruption, margin, signals_to_handle
from tests.support.processes import wait_for


@pytest.mark.parametrize(
    ("limit", "minutes"), [(0.5, 0.25), (1, 0.5), (3, 0.5), (30, 3), (1440, 10)]
)
def test_the_margin_is_a_tenth_within_bounds(limit: float, minutes: float) -> None:
    assert margin(limit) == pytest.approx(minutes)


def left(interruption: Interruption) -> float:
    """Return the minutes until a training is to stop."""
    assert interruption._end is not None
    return (interruption._end - time.monotonic()) / 60


def test_the_end_that_slurm_states_counts_before_a_time_limit() -> None:
    now = time.time()
    assert left(Interruption(60.0)) == pytest.approx(54, abs=0.1)
    assert left(Interruption(60.0, end=now + 30 * 60)) == pytest.approx(27, abs=0.1)
    assert left(Interruption(60.0, end=now + 90 * 60)) == pytest.approx(81, abs=0.1)
    assert left(Interruption(None, end=now + 30 * 60)) == pytest.approx(27, abs=0.1)
    assert Interruption(60.0).reason() is None
    assert (
        Interruption(60.0, end=now).reason() == "the time limit of 60 minutes is near"
    )
    assert Interruption(None, end=now).reason() == "the end of the job is near"
    assert Interruption(None).reason() is None


ANSWERS_A_SIGNAL = """\
import signal, sys, time
def stop(number, frame):
    time.sleep(0.5)
    sys.exit(print(f"{sys.argv[1]} was received") or 75)
signal.signal(getattr(signal, sys.argv[1]), stop)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_closed_terminal_stops_a_training_but_under_nohup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "getsignal", {signal.SIGHUP: signal.SIG_DFL}.get)
    assert signal.SIGHUP in signals_to_handle()
    monkeypatch.setattr(signal, "getsignal", {signal.SIGHUP: signal.SIG_IGN}.get)
    assert signals_to_handle() == [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_the_reason_and_the_exit_code_outlive_a_signal_to_the_group(
    tmp_path: Path, name: str
) -> None:
    program, log = tmp_path / "train.py", tmp_path / "train.log"
    program.write_text(ANSWERS_A_SIGNAL)
    (tmp_path / "before.log").write_text("the first try\n")
    command = logged(
        f"{sys.executable} {program} {name}", before=str(tmp_path / "before.log")
    )
    shell = f"set -euo pipefail; {formatted(command, log=log)}"
    job = subprocess.Popen(
        ["bash", "-c", shell], start_new_session=True, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    os.killpg(job.pid, getattr(signal, name))
    assert job.wait(60) == 75
    assert log.read_text() == f"the first try\nready\n{name} was received\n"
