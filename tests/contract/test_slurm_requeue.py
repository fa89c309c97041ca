"""A Slurm job that stops before its end is queued again, by a scontrol that stands for Slurm's."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.errors import UnfinishedError
from convs2s.training import scheduler
from convs2s.training.scheduler import queueing_again
from tests.support.processes import wait_for

SCONTROL = """\
#!/bin/sh
echo "$@" >> {said}
if [ "$1" = {fails} ]; then echo "slurm error:
   Access denied" >&2; exit 1; fi
[ "$1" != requeue ] || {end}
echo "JobId=7 JobState={state} Reason=None Requeue={allowed} Restarts=0"
"""
SHOW, ALLOW, AGAIN = "--oneliner show job 7", "update JobId=7 Requeue=1", "requeue 7"


@pytest.fixture(autouse=True)
def _in_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(scheduler, "_END_SECONDS", 0.0)


def scontrol(
    folder: Path,
    state: str = "RUNNING",
    allowed: int = 0,
    fails: str = "-",
    ends: bool = False,
) -> None:
    """Have a scontrol that notes its words, with one command that fails, or that ends the job."""
    end = "kill -TERM 0" if ends else "true"
    given = {"state": state, "allowed": allowed, "fails": fails, "end": end}
    text = SCONTROL.format(said=folder / "said", **given)
    (folder / "scontrol").write_text(text)
    (folder / "scontrol").chmod(0o755)


def stop() -> None:
    """Stop a training."""
    with queueing_again():
        raise UnfinishedError("saved: rerun the same command to resume")


def told(folder: Path) -> list[str]:
    """Return what scontrol was told."""
    said = folder / "said"
    return said.read_text().splitlines() if said.exists() else []


@pytest.mark.parametrize("allowed", [0, 1])
def test_slurm_queues_the_job_again_and_may_do_no_more_than_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: int
) -> None:
    scontrol(tmp_path, allowed=allowed)
    with pytest.raises(
        UnfinishedError, match="Slurm has queued job 7 again, but does not end it"
    ):
        stop()
    assert told(tmp_path) == [SHOW, ALLOW, AGAIN, f"update JobId=7 Requeue={allowed}"]
    assert capsys.readouterr().err.splitlines() == [
        "convs2s: saved: rerun the same command to resume",
        "convs2s: asking Slurm to queue job 7 again",
    ]


ENDED = """\
import os, signal
from convs2s.errors import UnfinishedError
from convs2s.training.scheduler import queueing_again
signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
with queueing_again():
    raise UnfinishedError("saved")
"""


def test_the_sigterm_by_which_slurm_ends_the_job_stops_no_command_of_it(
    tmp_path: Path,
) -> None:
    scontrol(tmp_path, ends=True)
    command = [sys.executable, "-c", ENDED]
    done = subprocess.run(
        command, start_new_session=True, check=False, capture_output=True
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")
    wait_for(lambda: told(tmp_path)[-1] == "update JobId=7 Requeue=0")


@pytest.mark.parametrize(
    ("fails", "asked"),
    [
        ("--oneliner", [SHOW]),
        ("update", [SHOW, ALLOW, "update JobId=7 Requeue=0"]),
        ("requeue", [SHOW, ALLOW, AGAIN, "update JobId=7 Requeue=0"]),
    ],
)
def test_what_slurm_refuses_is_said_and_ends_as_unfinished(
    tmp_path: Path, fails: str, asked: list[str]
) -> None:
    scontrol(tmp_path, fails=fails)
    refused = "^Slurm does not queue job 7 again: slurm error: Access denied$"
    with pytest.raises(UnfinishedError, match=refused):
        stop()
    assert told(tmp_path) == asked


def test_a_slurm_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_ANSWER_SECONDS", 0.1)
    (tmp_path / "scontrol").write_text("#!/bin/sh\nexec sleep 9\n")
    (tmp_path / "scontrol").chmod(0o755)
    with pytest.raises(
        UnfinishedError, match="does not queue job 7 again: no answer in time"
    ):
        stop()


@pytest.mark.parametrize("state", ["COMPLETING", "CANCELLED"])
def test_a_job_that_was_cancelled_is_not_queued_again(
    tmp_path: Path, state: str
) -> None:
    scontrol(tmp_path, state)
    with pytest.raises(UnfinishedError, match=r"^saved"):
        stop()
    assert told(tmp_path) == [SHOW]


@pytest.mark.parametrize(
    ("name", "value"), [("SLURM_JOB_ID", None), ("CONVS2S_RUN", "7@node:5:1")]
)
def test_outside_of_a_job_of_its_own_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    scontrol(tmp_path)
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(UnfinishedError, match=r"^saved"):
        stop()
    assert told(tmp_path) == []


def test_other_ends_are_left_alone(tmp_path: Path) -> None:
    scontrol(tmp_path)
    with pytest.raises(ZeroDivisionError), queueing_again():
        raise ZeroDivisionError
    with queueing_again():
        pass
    assert told(tmp_path) == []
