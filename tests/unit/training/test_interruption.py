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
from convs2s.training.interruption import Interruption, end_of_job, margin, signals_to_handle
from tests.support.processes import wait_for


@pytest.mark.parametrize(
    ("limit", "minutes"), [(0.5, 0.25), (1, 0.5), (3, 0.5), (30, 3), (1440, 10)]
)
def test_the_margin_is_a_tenth_within_bounds(limit: float, minutes: float) -> None:
    assert margin(limit) == pytest.approx(minutes)


def test_a_time_limit_counts_from_the_start_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    assert Interruption(1.0).reason() is None
    assert Interruption(1.0, end=now + 31).reason() is None
    late = Interruption(1.0, end=now + 29)
    assert late.reason() == "the time limit of 1 minutes is near"
    assert Interruption(None, end=now).reason() is None, "nobody asked for a limit"
    assert Interruption(1.0, end=now + 9999)._end == pytest.approx(time.monotonic() + 30, abs=1)


def test_slurm_says_when_a_job_ends() -> None:
    assert end_of_job({"SLURM_JOB_END_TIME": "1763790000"}) == 1763790000
    assert end_of_job({}) is None
    assert end_of_job({"SLURM_JOB_END_TIME": "Unknown"}) is None


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
    command = logged(f"{sys.executable} {program} {name}", before=str(tmp_path / "before.log"))
    shell = f"set -euo pipefail; {formatted(command, log=log)}"
    job = subprocess.Popen(["bash", "-c", shell], start_new_session=True, stdout=subprocess.DEVNULL)
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    os.killpg(job.pid, getattr(signal, name))
    assert job.wait(60) == 75
    assert log.read_text() == f"the first try\nready\n{name} was received\n"
