"""A run: one at a time in a folder, after the jobs that an earlier one has left."""

import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
import yaml
from sacremoses.corpus import NonbreakingPrefixes

from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.files.locks import try_lock
from convs2s.pipeline import run
from convs2s.pipeline.living import FOLDER, JOBS_LOCK, RUN, living_job
from convs2s.pipeline.run import begin_run, hold_results, task_warnings
from tests.support.jobs import job_command
from tests.support.limits import without_locks
from tests.support.processes import wait_for
from tests.support.refusals import refusal, says
from tests.support.user_task import TASK

Commands = list[tuple[object, ...]]
Clones = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("in_folder")

WAITS = "waiting for jobs of an earlier run in this folder: "


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
    me = f"process {os.getpid()} on {os.uname().nodename}, since "
    says(refusal(begin_run, settings), str(Path.cwd()), me, "wait until it ends")
    run._held.pop().close()  # as the process ends
    begin_run(settings)
    assert restarts == []


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clones:
    """Enter a clone by its name; all have the same results by a link, apart from `other`."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)

    def enter(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        if name != "other" and not Path("results").exists():
            Path("results").symlink_to("../shared")
        return folder

    return enter


def test_a_run_on_the_same_results_is_refused_with_the_name_of_the_first(
    clones: Clones, tmp_path: Path
) -> None:
    first = clones("first")
    hold_results(Path("results"))
    clones("second")
    me = f"process {os.getpid()} on {os.uname().nodename}, since "
    message = refusal(hold_results, Path("results"))
    says(message, f"{tmp_path}/shared: another snakemake makes these results ({me}")
    says(message, f", in {first}): wait until it ends, or end it (Ctrl-C, or kill")
    clones("other")
    hold_results(Path("results"))  # its own
    run._held[0].close()  # as the process ends
    clones("second")
    hold_results(Path("results"))
    hold_results(Path("results/scales/demo"))  # of another scale
    lock = tmp_path / "shared/.run.lock"
    assert f"in {tmp_path}/second\n" in lock.read_text()
    assert lock.stat().st_mode & 0o777 == 0o664  # whoever may write the folder


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("pathlib.Path.open", errno.EROFS),
        ("pathlib.Path.open", errno.EACCES),
        ("fcntl.flock", errno.ENOLCK),
    ],
)
def test_results_that_cannot_be_locked_are_left_so(
    clones: Clones, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """As somebody else's, of which a run only reads, or those on a disk without locks."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(call, fail)
    for name in ("first", "second"):
        clones(name)
        hold_results(Path("results"))
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        hold_results(Path("results"))


def test_jobs_of_an_earlier_run_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    FOLDER.mkdir(parents=True)
    log = tmp_path / "a.log"
    of_run = os.environ | {RUN: "@here:1:2"}
    command = job_command(log, "sys.stdin.read()")
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=of_run) as job:
        wait_for(lambda: log.exists() and "at work" in log.read_text())
        assert job.stdin is not None
        ends = threading.Timer(0.8, job.stdin.close)
        ends.start()
        begin_run(settings)
        assert "done in" in log.read_text()
        ends.join()
    waits, ended = capfd.readouterr().err.splitlines()
    assert waits.startswith(f"{WAITS}jobs that run ")
    assert ended == "all have ended: the same command starts again"
    assert restarts == [(sys.executable, [sys.executable, *sys.orig_argv[1:]])]


@pytest.fixture
def squeue(tmp_path: Path) -> Path:
    """A program in Slurm's place, in a folder where a run on Slurm has been."""
    Path(".snakemake/slurm_logs").mkdir(parents=True)
    program = tmp_path / "bin/squeue"
    program.parent.mkdir()
    program.touch(0o755)
    return program


def answer_once(squeue: Path, *jobs: str) -> None:
    queue = squeue.with_name("queue")
    queue.write_text("".join(f"{job}\n" for job in jobs))
    read = f'while read -r line; do echo "$line"; done < {queue}'
    squeue.write_text(f"#!/bin/sh\n{read}\n: > {queue}\n")


def test_jobs_that_wait_in_slurm_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    squeue: Path,
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    answer_once(
        squeue,
        f"12|PENDING|{tmp_path}|rule_train_model_wildcards_demo",
        f"13|RUNNING|{tmp_path}|group_text",
        f"14|RUNNING|{tmp_path}/elsewhere|rule_train_model",
        f"15|RUNNING|{tmp_path}|somebody's own",
        f"16|RUNNING|{tmp_path}|rule_of_this_process",
    )
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
    waiting = "12 (PENDING, rule_train_model_wildcards_demo)"
    running = "13 (RUNNING, group_text)"
    assert first.startswith(f"{WAITS}Slurm job {waiting}, Slurm job {running} (to ")
    assert len(restarts) == 1


def test_a_slurm_that_does_not_answer_is_waited_for_after_a_run_on_it(
    settings: Settings,
    squeue: Path,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    answered = squeue.with_name("answered")
    squeue.write_text(
        f"#!/bin/sh\n[ -e {answered} ] || {{ : > {answered}; exit 1; }}\n"
    )
    logs = Path(".snakemake/slurm_logs")
    logs.rmdir()
    begin_run(settings)  # there was no run on Slurm in this folder: nobody asks
    assert not answered.exists()
    run._held.pop().close()  # as the process ends
    logs.mkdir()
    begin_run(settings)
    assert f"{WAITS}jobs of Slurm, which does not" in capfd.readouterr().err
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


@pytest.mark.parametrize("waiting", [0, 1])
def test_without_locks_of_the_file_system_slurm_alone_is_asked(
    settings: Settings,
    tmp_path: Path,
    squeue: Path,
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
    waiting: int,
) -> None:
    answer_once(squeue, *[f"12|RUNNING|{tmp_path}|rule_train_model"] * waiting)
    monkeypatch.setattr(fcntl, "flock", without_locks)
    begin_run(settings)
    with living_job():
        assert RUN in os.environ
    assert len(restarts) == waiting


def test_the_locks_are_those_that_nfs_grants_and_other_failures_are_errors(
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

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output error"):
        begin_run(settings)


def test_a_mirror_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    missing = str(tmp_path / "unmounted")
    mirrors = (str(tmp_path), "https://mirror.example/of", missing)
    options = settings.options.model_copy(update={"mirrors": mirrors})
    message = refusal(begin_run, replace(settings, options=options))
    says(message, "mirrors: ", missing, "no such folder", "mount it")


OF_INDIA = ["as", "bn", "gu", "hi", "kn", "ml", "mni", "mr", "or", "pa", "ta", "te"]
WITH_ABBREVIATIONS = sorted(
    {*NonbreakingPrefixes().available_langs.values()} - {"zh", "yue", *OF_INDIA}
)


def own_task(language: str, preparation: str = "moses_train") -> Task:
    stated = yaml.safe_load(TASK)
    stated["languages"]["target"] = language
    stated["preparation"] = {"train": preparation, "test": preparation}
    return Task.model_validate(stated).named("mine")


@pytest.mark.parametrize(
    ("code", "preparation", "words"),
    [
        ("zh", "moses_train", ["'zh' has no blanks between words"]),
        ("yue", "moses_train", ["'yue' has no blanks between words"]),
        ("zh", "none", []),
        ("zh", "analyzer", []),  # an extension
        ("rom", "moses_train", ["'rom' has no list of", "use that code"]),
        ("tr", "moses_train", ["'tr' has no list of abbreviations"]),
        ("tr_title", "moses_train", ["'tr_title' has no list of abbreviations"]),
        ("tr", "analyzer", []),
        (
            "ko",
            "moses_train",
            ["no list of abbreviations", "spaces between words stay"],
        ),
        *[(code, "wmt16", ["not cut at the signs"]) for code in OF_INDIA],
        *[(code, "moses_train", []) for code in WITH_ABBREVIATIONS],
    ],
)
def test_text_that_the_preparation_does_not_suit_is_told_of(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    code: str,
    preparation: str,
    words: list[str],
) -> None:
    mine = own_task(code, preparation)
    warnings = task_warnings([*settings.tasks.values(), mine])
    assert len(warnings) == bool(words)
    says("".join(warnings), *words)
    begin_run(replace(settings, tasks={"mine": mine}))
    told = "".join(f"warning: {line}\n" for line in warnings)
    assert capsys.readouterr().err == told
