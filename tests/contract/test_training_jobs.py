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
from unittest.mock import Mock

import pytest
import yaml
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
from convs2s.training import launch, scheduler
from convs2s.training.heartbeat import Pulse
from convs2s.training.interruption import Interruption, signals_to_handle
from convs2s.training.run import train
from tests.support import tiny
from tests.support.processes import wait_for
from tests.support.refusals import refusal, refuses, rows, says

# ---- when it stops ----

MINUTES = """
0.5 => null => 0.25 => the time limit of 0.5 minutes is near
3 => null => 2.5 => the time limit of 3 minutes is near
60 => null => 54 => the time limit of 60 minutes is near
1440 => null => 1430 => the time limit of 1440 minutes is near
60 => 30 => 27 => the time limit of 60 minutes is near
60 => 90 => 81 => the time limit of 60 minutes is near
null => 30 => 27 => the end of the job is near
"""


def test_it_stops_before_its_limit_or_the_end_that_slurm_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit, end, stops, reason in rows(MINUTES):
        minutes = json.loads(end)
        interruption = Interruption(
            json.loads(limit), end=minutes and time.time() + 60 * minutes
        )
        assert interruption.seconds_left() == pytest.approx(60 * float(stops), abs=1)
        assert interruption.reason() is None
        with monkeypatch.context() as patch:
            patch.setattr(time, "monotonic", lambda: math.inf)
            assert interruption.reason() == reason
    assert Interruption(launcher=os.getppid()).reason() is None
    reason = "the process that started the workers has ended"
    assert Interruption(launcher=os.getpid()).reason() == reason


def test_a_closed_terminal_stops_a_training_but_under_nohup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_DFL)
    assert signal.SIGHUP in signals_to_handle()
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
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


# ---- how it is queued again ----


def test_a_slurm_job_has_an_end_and_is_no_trainings_own_if_snakemake_runs_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {})
    assert scheduler.end_of_job() is None
    for stated, end in (("1763790000", 1763790000), ("Unknown", None)):
        os.environ["SLURM_JOB_END_TIME"] = stated
        assert scheduler.end_of_job() == end
    assert scheduler.own_slurm_job() is None
    os.environ["SLURM_JOB_ID"] = "7"
    assert scheduler.own_slurm_job() == "7"  # by hand
    scheduler.begin_run()
    assert scheduler.own_slurm_job() is None
    name = os.environ[RUN]
    os.environ["SLURM_JOB_ID"] = "8"
    scheduler.begin_run()
    assert os.environ.pop(RUN) == name, "a job keeps the name of its run"
    assert scheduler.own_slurm_job() == "8"
    scheduler.begin_run()
    assert os.environ[RUN] != name


SCONTROL = """\
#!/bin/sh
case "$*" in
  "--oneliner show job 7") asked=show ;;
  "update JobId=7 Requeue="?) asked=$3 ;;
  "requeue 7") asked=requeue ;;
esac
echo "$asked" >> "${0%/*}/asked"
if [ "$asked" = "$FAILS" ]; then echo "slurm error:
   Access denied" >&2; exit 1; fi
if [ "$asked" = "$HANGS" ]; then exec sleep 9; fi
if [ "$asked" = "$ENDS" ]; then kill -TERM 0; fi
echo "JobId=7 JobState=${STATE:-RUNNING} Reason=None Requeue=${ALLOWED:-0} Restarts=0"
"""
"""It notes what it is asked, and does what variables say."""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def in_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "scontrol", SCONTROL)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(scheduler, "_END_SECONDS", 0.0)


def stop_early() -> None:
    with scheduler.queueing_again():
        raise UnfinishedError("saved")


# A job that Slurm has cancelled is COMPLETING.
QUEUED = """
STATE=RUNNING => queued job 7 again, but => show Requeue=1 requeue Requeue=0
ALLOWED=1 => queued job 7 again, but => show Requeue=1 requeue Requeue=1
FAILS=show => again: slurm error: Access denied => show
FAILS=Requeue=1 => again: slurm error: Access denied => show Requeue=1 Requeue=0
FAILS=requeue => again: slurm error: Access denied => show Requeue=1 requeue Requeue=0
STATE=COMPLETING => saved => show
"""


@pytest.mark.usefixtures("in_a_job")
@pytest.mark.parametrize(("variable", "words", "asked"), rows(QUEUED))
def test_slurm_queues_the_job_again_and_may_do_no_more_than_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    words: str,
    asked: str,
) -> None:
    monkeypatch.setenv(*variable.split("=", 1))
    refuses(words, stop_early)
    assert (tmp_path / "asked").read_text().split() == asked.split()


@pytest.mark.usefixtures("in_a_job")
def test_neither_a_slurm_that_does_not_answer_is_waited_for_nor_the_job_of_snakemake_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "_ANSWER_SECONDS", 0.1)
    monkeypatch.setenv("HANGS", "show")
    refuses("again: no answer in time", stop_early)
    monkeypatch.setenv(RUN, "7@node:5:1")
    assert refusal(stop_early) == "saved"


ENDED = """\
import signal
from convs2s.errors import UnfinishedError
from convs2s.training.scheduler import queueing_again
signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
with queueing_again():
    raise UnfinishedError("saved")
"""


@pytest.mark.usefixtures("in_a_job")
def test_the_sigterm_by_which_slurm_ends_the_job_stops_no_command_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDS", "requeue")
    done = subprocess.run(
        [sys.executable, "-c", ENDED],
        start_new_session=True,
        check=False,
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")
    wait_for(lambda: (tmp_path / "asked").read_text().endswith("\nRequeue=0\n"))


# ---- its workers and nodes ----


def test_torchrun_is_told_of_the_workers_and_gives_them_time_to_meet_and_to_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(run, "run", asked.append)
    for seconds, waits in ((math.inf, 600), (90.5, 91), (-5.0, 60)):
        options = launch.torchrun_options(2, 4, "first:29", seconds)
        launch.torchrun(options, ["train"], tmp_path)
        config, _, _ = run.config_from_args(asked[-1])
        assert config.rdzv_configs["join_timeout"] == str(waits)
    assert (config.min_nodes, config.nproc_per_node) == (2, 4)
    assert config.rdzv_endpoint == "first:29"
    assert config.shutdown_timeout == launch.SHUTDOWN_SECONDS
    monkeypatch.setattr(run, "run", Mock(side_effect=RendezvousTimeoutError))
    said = refusal(launch.torchrun, options, ["train"], tmp_path)
    says(said, "the nodes did not find each other in time", "docs/cluster.md")
    # Its loggers are silent, this one with a level of its own, too.
    logger = logging.getLogger("torch.distributed.elastic.agent.server.api")
    assert not logger.isEnabledFor(logging.ERROR)


# Worker 0 has only noticed that worker 5 had ended, which may still clean up, or found the same.
FAILURES = """
{0: 1} => {0: null, 5: pair 7 alone does not fit} => worker 5: pair 7 alone
{0: 1, 5: 1} => {0: null, 5: pair 7} => worker 5: pair 7
{0: 1, 13: -9} => {0: null} => worker 13 was killed by SIGKILL
{0: 1} => {0: null} => the workers ended with the error above
{0: 1, 1: 1} => {1: no such file, 0: no such file} => worker 0: no such
"""


def test_the_last_line_names_the_worker_by_which_the_others_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for codes, spoken, message in rows(FAILURES):
        for path in tmp_path.iterdir():
            path.unlink()
        for worker, words in yaml.safe_load(spoken).items():
            pulse = asdict(Pulse(worker=worker, words=words))
            (tmp_path / f"{worker}").write_text(json.dumps(pulse) + "\n")
        failures = {}
        for worker, code in yaml.safe_load(codes).items():
            # Eight workers are on each machine.
            failures[worker] = ProcessFailure(worker % 8, 100 + worker, code, "")
        fail = Mock(side_effect=ChildFailedError("convs2s", failures))
        monkeypatch.setattr(run, "run", fail)
        options = launch.torchrun_options(1, 8, tmp_path)
        refuses(message, launch.torchrun, options, ["train"], tmp_path)


def test_a_worker_compiles_with_its_own_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    # There are no data to train on.
    refusal(train, tiny.job(tmp_path, tmp_path / "model.safetensors"))
    assert os.environ["TORCHINDUCTOR_COMPILE_THREADS"] == "1"


def test_of_a_whole_nodes_gpus_as_many_are_used_as_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    launch.check_grant(2)  # on a workstation
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    launch.check_grant(4)
    assert capsys.readouterr().err == ""
    launch.check_grant(2)
    says(capsys.readouterr().err, "4 GPUs were granted", "only 2 are used")


def test_a_node_and_a_worker_leave_the_notes_to_the_process_that_started_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not launch.is_started_by_another()
    monkeypatch.setenv(launch.MEETING, "node1:29")
    assert launch.is_started_by_another()
    monkeypatch.delenv(launch.MEETING)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.setenv(name, "1")
    assert launch.is_started_by_another()


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
    job = tiny.job(task, tmp_path / "model")
    with pytest.raises(UnfinishedError, match="the nodes stopped before the end"):
        launch.launch(job, 2, 1, ["train", "folder"])
    meeting, *options = (tmp_path / "said").read_text().split()
    assert int(meeting.rpartition(":")[2]) > 0
    assert {"--nodes=2", "--ntasks-per-node=1"} <= set(options)
    assert options[-3:] == ["convs2s", "train", "folder"]
