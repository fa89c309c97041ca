"""A training in a scheduler's job: its end, its nodes, and how it is queued again.

Programs stand for Slurm's scontrol and srun.
"""

import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from snakemake.utils import format as formatted
from torch.distributed import run
from torch.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
)
from torch.distributed.elastic.rendezvous import RendezvousTimeoutError

from convs2s.errors import UnfinishedError
from convs2s.pipeline.living import RUN
from convs2s.pipeline.process import logged
from convs2s.training import scheduler
from convs2s.training.heartbeat import Pulse
from convs2s.training.interruption import Interruption, margin, signals_to_handle
from convs2s.training.launch import (
    SHUTDOWN_SECONDS,
    check_grant,
    launch,
    torchrun,
    torchrun_options,
)
from convs2s.training.run import train
from convs2s.training.scheduler import (
    SCHEDULERS,
    begin_run,
    end_of_job,
    is_in_a_job,
    own_slurm_job,
    queueing_again,
)
from tests.support import tiny
from tests.support.processes import wait_for
from tests.support.refusals import refusal, says


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a process that has none yet."""
    variables: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", variables)
    return variables


# ---- when it stops ----


@pytest.mark.parametrize(
    ("limit", "minutes"), [(0.5, 0.25), (1, 0.5), (3, 0.5), (30, 3), (1440, 10)]
)
def test_the_margin_is_a_tenth_within_bounds(limit: float, minutes: float) -> None:
    assert margin(limit) == pytest.approx(minutes)


@pytest.mark.parametrize(
    ("limit", "end", "stops", "reason"),
    [
        (60.0, None, 54, "the time limit of 60 minutes is near"),
        (60.0, 30, 27, "the time limit of 60 minutes is near"),
        (60.0, 90, 81, "the time limit of 60 minutes is near"),
        (None, 30, 27, "the end of the job is near"),
    ],
)
def test_the_end_that_slurm_states_counts_before_a_time_limit(
    monkeypatch: pytest.MonkeyPatch,
    limit: float | None,
    end: float | None,
    stops: float,
    reason: str,
) -> None:
    stated = None if end is None else time.time() + 60 * end
    interruption = Interruption(limit, end=stated)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60 * (stops - 0.1))
    assert interruption.reason() is None
    monkeypatch.setattr(time, "monotonic", lambda: now + 60 * (stops + 0.1))
    assert interruption.reason() == reason
    assert Interruption(None).reason() is None


@pytest.mark.parametrize(
    ("stated", "end"), [("1763790000", 1763790000), (None, None), ("Unknown", None)]
)
def test_slurm_says_when_a_job_ends(
    environment: dict[str, str], stated: str | None, end: float | None
) -> None:
    if stated is not None:
        environment["SLURM_JOB_END_TIME"] = stated
    assert end_of_job() == end


def test_a_closed_terminal_stops_a_training_but_under_nohup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "getsignal", {signal.SIGHUP: signal.SIG_DFL}.get)
    assert signal.SIGHUP in signals_to_handle()
    monkeypatch.setattr(signal, "getsignal", {signal.SIGHUP: signal.SIG_IGN}.get)
    assert signals_to_handle() == [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT]


ANSWERS_A_SIGNAL = """\
import signal, sys, time
def stop(number, frame):
    time.sleep(0.5)
    print("received")
    sys.exit(75)
signal.signal(int(sys.argv[1]), stop)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_reason_and_the_exit_code_outlive_a_signal_to_the_group(
    tmp_path: Path, number: int
) -> None:
    program = tmp_path / "train.py"
    program.write_text(ANSWERS_A_SIGNAL)
    log = tmp_path / "train.log"
    before = tmp_path / "before.log"
    before.write_text("the first try\n")
    command = logged(f"{sys.executable} {program} {number:d}", before=str(before))
    shell = f"set -euo pipefail; {formatted(command, log=log)}"
    job = subprocess.Popen(
        ["bash", "-c", shell], start_new_session=True, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: log.exists() and "ready" in log.read_text())
    os.killpg(job.pid, number)
    assert job.wait(60) == 75
    assert log.read_text() == "the first try\nready\nreceived\n"


# ---- which job it is ----


@pytest.mark.parametrize("variable", SCHEDULERS.values())
def test_a_job_of_a_scheduler_is_known_by_its_variable(
    environment: dict[str, str], variable: str
) -> None:
    environment["HOME"] = "/root"
    assert not is_in_a_job()
    environment[variable] = "7"
    assert is_in_a_job()


def test_a_slurm_job_that_snakemake_runs_in_is_no_trainings_own(
    environment: dict[str, str],
) -> None:
    assert own_slurm_job() is None
    environment["SLURM_JOB_ID"] = "7"
    assert own_slurm_job() == "7"  # by hand
    begin_run()
    assert own_slurm_job() is None
    name = environment[RUN]
    environment["SLURM_JOB_ID"] = "8"
    begin_run()
    assert environment.pop(RUN) == name, "a job keeps the name of its run"
    assert own_slurm_job() == "8"
    begin_run()
    assert environment[RUN] != name


# ---- how it is queued again ----

SCONTROL = """\
#!/bin/sh
echo "$@" >> {said}
if [ "$1" = {fails} ]; then echo "slurm error:
   Access denied" >&2; exit 1; fi
[ "$1" != requeue ] || {end}
echo "JobId=7 JobState={state} Reason=None Requeue={allowed} Restarts=0"
"""
SHOW = "--oneliner show job 7"
ALLOW = "update JobId=7 Requeue=1"
FORBID = "update JobId=7 Requeue=0"
AGAIN = "requeue 7"


@pytest.fixture
def in_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(scheduler, "_END_SECONDS", 0.0)


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def scontrol(folder: Path, **changes: object) -> None:
    """Have a scontrol that notes its words."""
    given = {"state": "RUNNING", "allowed": 0, "fails": "-", "end": "true"} | changes
    text = SCONTROL.format(said=folder / "said", **given)
    program(folder / "scontrol", text)


def told(folder: Path) -> list[str]:
    said = folder / "said"
    return said.read_text().splitlines() if said.exists() else []


@pytest.mark.usefixtures("in_a_job")
@pytest.mark.parametrize(
    ("changes", "variables", "words", "asked"),
    [
        ({}, {}, "queued job 7 again, but", [SHOW, ALLOW, AGAIN, FORBID]),
        ({"allowed": 1}, {}, "queued job 7 again, but", [SHOW, ALLOW, AGAIN, ALLOW]),
        ({"fails": "--oneliner"}, {}, "again: slurm error: Access denied", [SHOW]),
        ({"fails": "update"}, {}, "error: Access denied", [SHOW, ALLOW, FORBID]),
        ({"fails": "requeue"}, {}, "Access denied", [SHOW, ALLOW, AGAIN, FORBID]),
        # It was cancelled.
        ({"state": "COMPLETING"}, {}, "saved", [SHOW]),
        ({}, {RUN: "7@node:5:1"}, "saved", []),
    ],
)
def test_slurm_queues_the_job_again_and_may_do_no_more_than_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    variables: dict[str, str],
    words: str,
    asked: list[str],
) -> None:
    scontrol(tmp_path, **changes)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UnfinishedError) as error, queueing_again():
        raise UnfinishedError("saved")
    says(str(error.value), words)
    assert told(tmp_path) == asked


@pytest.mark.usefixtures("in_a_job")
def test_a_slurm_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_ANSWER_SECONDS", 0.1)
    program(tmp_path / "scontrol", "#!/bin/sh\nexec sleep 9\n")
    with (
        pytest.raises(UnfinishedError, match="again: no answer in time"),
        queueing_again(),
    ):
        raise UnfinishedError("saved")


ENDED = """\
import os, signal
from convs2s.errors import UnfinishedError
from convs2s.training.scheduler import queueing_again
signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
with queueing_again():
    raise UnfinishedError("saved")
"""


@pytest.mark.usefixtures("in_a_job")
def test_the_sigterm_by_which_slurm_ends_the_job_stops_no_command_of_it(
    tmp_path: Path,
) -> None:
    scontrol(tmp_path, end="kill -TERM 0")
    command = [sys.executable, "-c", ENDED]
    done = subprocess.run(
        command, start_new_session=True, check=False, capture_output=True
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")
    wait_for(lambda: told(tmp_path)[-1] == FORBID)


# ---- its workers and nodes ----


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            torchrun_options(1, 2, Path("folder")),
            {"--nnodes=1", "--nproc-per-node=2", "--rdzv-conf=store_type=file"},
        ),
        (
            torchrun_options(2, 4, "first:29"),
            {"--nnodes=2", "--nproc-per-node=4", "--rdzv-endpoint=first:29"},
        ),
    ],
)
def test_torchrun_is_told_of_the_workers_and_gives_them_time_to_save(
    monkeypatch: pytest.MonkeyPatch, options: list[str], words: set[str]
) -> None:
    assert words <= set(options)
    asked: list[Any] = []
    monkeypatch.setattr(run, "run", asked.append)
    torchrun(options, ["train"], Path("heartbeats"))
    # Its loggers are silent, those with a level of their own, too.
    for part in ("", ".agent.server.api", ".multiprocessing.api"):
        logger = logging.getLogger(f"torch.distributed.elastic{part}")
        assert not logger.isEnabledFor(logging.ERROR)
    config, _, _ = run.config_from_args(asked[0])
    assert config.shutdown_timeout == SHUTDOWN_SECONDS


@pytest.mark.parametrize(
    ("codes", "spoken", "message"),
    [
        # The first worker only noticed that the sixth had ended, which still cleans up.
        ({0: 1}, {0: None, 5: "pair 7 alone does not fit"}, "worker 5: pair 7 alone"),
        ({0: 1, 5: 1}, {0: None, 5: "pair 7"}, "worker 5: pair 7"),
        ({0: 1, 13: -9}, {0: None}, "worker 13 was killed by SIGKILL"),
        ({0: 1}, {0: None}, "the workers ended with the error above"),
        # All workers found the same.
        ({0: 1, 1: 1}, {1: "no such file", 0: "no such file"}, "worker 0: no such"),
    ],
)
def test_the_last_line_names_the_worker_by_which_the_others_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    codes: dict[int, int],
    spoken: dict[int, str | None],
    message: str,
) -> None:
    for worker, words in spoken.items():
        pulse = Pulse(worker=worker, words=words)
        (tmp_path / f"{worker}").write_text(json.dumps(asdict(pulse)) + "\n")
    failures = {}
    for worker, code in codes.items():
        # Eight workers are on each machine.
        failures[worker] = ProcessFailure(worker % 8, 100 + worker, code, "")

    def fail(_: object) -> None:
        raise ChildFailedError("convs2s", failures)

    monkeypatch.setattr(run, "run", fail)
    options = torchrun_options(1, 8, tmp_path)
    says(refusal(torchrun, options, ["train"], tmp_path), message)


def test_nodes_wait_for_each_other_no_longer_than_the_job_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds, waits in ((math.inf, 600), (7200.0, 600), (90.5, 91), (-5.0, 60)):
        options = torchrun_options(2, 4, "first:29", seconds)
        assert f"--rdzv-conf=is_host=0,join_timeout={waits}" in options

    def fail(_: object) -> None:
        raise RendezvousTimeoutError

    monkeypatch.setattr(run, "run", fail)
    said = refusal(torchrun, options, ["train"], tmp_path)
    says(said, "the nodes did not find each other in time", "docs/cluster.md")


@pytest.mark.parametrize(("stated", "threads"), [(None, "1"), ("7", "7")])
def test_a_worker_compiles_with_its_own_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str | None, threads: str
) -> None:
    name = "TORCHINDUCTOR_COMPILE_THREADS"
    monkeypatch.setenv(name, stated or "")
    if stated is None:
        monkeypatch.delenv(name)
    # There are no data to train on.
    refusal(train, tiny.job(tmp_path, tmp_path / "model.safetensors"))
    assert os.environ[name] == threads


def test_of_a_whole_nodes_gpus_as_many_are_used_as_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    check_grant(2)  # on a workstation
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    check_grant(4)
    assert capsys.readouterr().err == ""
    check_grant(2)
    says(capsys.readouterr().err, "4 GPUs were granted", "only 2 are used")


SRUN = """\
#!/bin/sh
echo "$CONVS2S_MEETING $*" > {said}
trap 'exit {code}' USR1
sleep 0.5
kill -TERM $PPID
for second in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done
"""


@pytest.mark.usefixtures("in_a_job")
def test_a_signal_to_a_job_of_several_nodes_reaches_them_and_keeps_their_exit_code(
    task: Path, tmp_path: Path
) -> None:
    text = SRUN.format(said=tmp_path / "said", code=UnfinishedError.exit_code)
    program(tmp_path / "srun", text)
    with pytest.raises(UnfinishedError, match="the nodes stopped before the end"):
        launch(tiny.job(task, tmp_path / "model"), 2, 1, ["train", "folder"])
    meeting, *options = (tmp_path / "said").read_text().split()
    assert int(meeting.rpartition(":")[2]) > 0
    assert {"--nodes=2", "--ntasks-per-node=1"} <= set(options)
    assert options[-3:] == ["convs2s", "train", "folder"]
