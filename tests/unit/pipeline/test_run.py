"""A run: one at a time in a folder, after the jobs that an earlier one has left."""

import errno
import fcntl
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
import yaml
from sacremoses.corpus import NonbreakingPrefixes

from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.errors import UserError
from convs2s.files.locks import try_lock
from convs2s.pipeline import run
from convs2s.pipeline.living import FOLDER, JOBS_LOCK, RUN, living_job
from convs2s.pipeline.run import begin_run, task_warnings
from tests.support.jobs import job_command
from tests.support.limits import refuse_lock
from tests.support.processes import wait_for
from tests.support.user_task import TASK

Commands = list[tuple[object, ...]]

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture(autouse=True)
def restarts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Commands]:
    """Have no Slurm and no run; note what would start again in the place of this process."""
    commands: Commands = []
    monkeypatch.setattr(os, "execv", lambda *command: commands.append(command))
    monkeypatch.setattr(run, "_SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr(run, "_held", [])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv(RUN, "before")  # to have it as it was after the test
    monkeypatch.delenv(RUN)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    yield commands
    for lock in run._held:
        lock.close()


def test_a_second_run_is_refused_with_the_name_of_the_first(
    settings: Settings, restarts: Commands
) -> None:
    begin_run(settings)
    assert f":{os.getpid()}:" in os.environ[RUN]
    me = rf"process {os.getpid()} on {re.escape(os.uname().nodename)}, since [-\d]+ [:\d]+"
    message = rf"^{Path.cwd()}: another snakemake runs here \({me}\): wait until it ends, or end"
    with pytest.raises(UserError, match=message):
        begin_run(settings)
    run._held.pop().close()  # as the process ends
    begin_run(settings)
    assert restarts == []


def test_jobs_of_an_earlier_run_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    FOLDER.mkdir(parents=True)
    log, of_run = tmp_path / "a.log", os.environ | {RUN: "@here:1:2"}
    command = job_command(log, "sys.stdin.read()")
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=of_run) as job:
        wait_for(lambda: log.exists() and "at work" in log.read_text())
        assert job.stdin is not None
        ends = threading.Timer(0.8, job.stdin.close)
        ends.start()
        begin_run(settings)
        assert "done in" in log.read_text()
        ends.join()
    said = capfd.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in said] == [
        "waiting for jobs of an earlier run in this folder: jobs that run",
        "all have ended: the same command starts again",
    ]
    assert restarts == [(sys.executable, [sys.executable, *sys.orig_argv[1:]])]


SQUEUE = """#!/bin/sh
while read -r line; do echo "$line"; done < {queue}
: > {queue}
"""


def test_jobs_that_wait_in_slurm_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    squeue, queue = tmp_path / "bin/squeue", tmp_path / "queue"
    squeue.parent.mkdir()
    squeue.write_text(SQUEUE.format(queue=queue))
    squeue.chmod(0o755)
    queue.write_text(
        f"12|PENDING|{tmp_path}|rule_train_model_wildcards_demo\n"
        f"13|RUNNING|{tmp_path}|group_text\n"
        f"14|RUNNING|{tmp_path}/elsewhere|rule_train_model\n"
        f"15|RUNNING|{tmp_path}|somebody's own\n"
        f"16|RUNNING|{tmp_path}|rule_of_this_process\n"
    )
    Path(".snakemake/slurm_logs").mkdir(parents=True)  # as of a run on Slurm
    monkeypatch.setenv("SLURM_JOB_ID", "16")
    starting: list[bool] = []

    def start_a_job(seconds: float) -> None:
        with JOBS_LOCK.open("a+") as jobs:
            starting.append(try_lock(jobs, shared=True))

    monkeypatch.setattr("time.sleep", start_a_job)
    begin_run(settings)
    assert starting  # what was queued waits for nobody when it starts
    assert all(starting)
    first, _ = capfd.readouterr().err.splitlines()
    assert first.startswith(
        "waiting for jobs of an earlier run in this folder: Slurm job 12 (PENDING, "
        "rule_train_model_wildcards_demo), Slurm job 13 (RUNNING, group_text) (to begin without "
    )
    assert len(restarts) == 1


def test_a_slurm_that_does_not_answer_is_waited_for(
    settings: Settings,
    tmp_path: Path,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    squeue = tmp_path / "bin/squeue"
    squeue.parent.mkdir()
    answered = tmp_path / "answered"
    squeue.write_text(
        f"#!/bin/sh\n[ -e {answered} ] || {{ : > {answered}; exit 1; }}\n"
    )
    squeue.chmod(0o755)
    begin_run(settings)  # there was no run on Slurm in this folder: nobody asks
    assert not answered.exists()
    run._held.pop().close()  # as the process ends
    Path(".snakemake/slurm_logs").mkdir(parents=True)
    begin_run(settings)
    assert (
        "waiting for jobs of an earlier run in this folder: jobs of Slurm, which does not"
        in (capfd.readouterr().err)
    )
    assert len(restarts) == 1


def test_a_job_of_a_run_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    FOLDER.mkdir(parents=True)
    with living_job():
        assert not JOBS_LOCK.exists()  # as of no run
    monkeypatch.setenv(RUN, "@here:1:2")
    with living_job(), living_job(), JOBS_LOCK.open("a+") as lock:
        assert not try_lock(lock)
    with JOBS_LOCK.open("a+") as lock:
        assert try_lock(lock)


def test_without_locks_of_the_file_system_a_run_begins_all_the_same(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, restarts: Commands
) -> None:
    monkeypatch.setattr(fcntl, "flock", refuse_lock)
    begin_run(settings)
    with living_job():
        assert RUN in os.environ
    assert restarts == []


def test_without_locks_of_the_file_system_jobs_in_slurm_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
) -> None:
    squeue, queue = tmp_path / "bin/squeue", tmp_path / "queue"
    squeue.parent.mkdir()
    squeue.write_text(SQUEUE.format(queue=queue))
    squeue.chmod(0o755)
    queue.write_text(f"12|RUNNING|{tmp_path}|rule_train_model\n")
    Path(".snakemake/slurm_logs").mkdir(parents=True)
    monkeypatch.setattr(fcntl, "flock", refuse_lock)
    begin_run(settings)
    assert len(restarts) == 1


def test_a_lock_that_fails_for_another_reason_is_an_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output error"):
        begin_run(settings)


def test_the_locks_are_those_that_nfs_grants(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nfs4_proc_lock of Linux: a shared lock is a reader's, an exclusive one a writer's."""
    asked = []

    def flock(file: IO[str], operation: int) -> None:
        asked.append(operation)
        has = file.readable() if operation & fcntl.LOCK_SH else file.writable()
        if not has:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    begin_run(settings)
    with living_job():
        assert len(asked) == 3


def test_a_mirror_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    missing = tmp_path / "unmounted"
    mirrors = (str(tmp_path), "https://mirror.example/of", str(missing))
    options = settings.options.model_copy(update={"mirrors": mirrors})
    with pytest.raises(
        UserError, match=f"^mirrors: {missing}: no such folder: mount it, or"
    ):
        begin_run(replace(settings, options=options))


# Warnings


def own_task(language: str, **stated: object) -> Task:
    own = yaml.safe_load(TASK) | {"languages": {"source": "en", "target": language}}
    return Task.model_validate(own | stated).named("mine")


def test_text_without_blanks_is_told_of(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert task_warnings(settings.tasks.values()) == []
    (line,) = task_warnings([own_task("zh")])
    assert line.startswith(
        "mine: text in 'zh' has no blanks between words, and no preparation"
    )
    split = {"train": "none", "test": "none"}
    assert task_warnings([own_task("zh", preparation=split)]) == []
    begin_run(replace(settings, tasks={"mine": own_task("zh")}))
    assert capsys.readouterr().err == f"warning: {line}\n"


@pytest.mark.parametrize("code", ["rom", "tr", "tr_title"])
def test_a_language_code_without_abbreviations_is_told_of(code: str) -> None:
    (line,) = task_warnings([own_task(code)])
    assert line.startswith(f"mine: '{code}' has no list of abbreviations")
    assert ("use that code" in line) == (code == "rom")
    # Which need not use the lists of Moses.
    extension = {"train": "analyzer", "test": "analyzer"}
    assert task_warnings([own_task(code, preparation=extension)]) == []


def test_the_languages_with_abbreviations_are_those_of_sacremoses() -> None:
    codes = set(NonbreakingPrefixes().available_langs.values())
    assert codes == set(run._WITH_ABBREVIATIONS.split())
    for code in codes - {"zh"}:
        assert task_warnings([own_task(code)]) == []
