"""A run: one at a time in a folder, after the jobs that an earlier one has left."""

import errno
import fcntl
import os
import subprocess
import sys
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
from convs2s.pipeline.run import begin_run, hold_results
from convs2s.text.languages import preparation_warning
from tests.faults.limits import without_locks
from tests.faults.systems import failing
from tests.support.own_pair import TASK
from tests.support.processes import job_command, wait_for
from tests.support.refusals import refusal, rows, says

Commands = list[tuple[object, ...]]

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
    for name in (RUN, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
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


def test_a_run_on_the_same_results_is_refused_with_the_name_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clones have them by a link."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o775)
    second = tmp_path / "second"
    second.mkdir()
    for folder in (tmp_path, second):
        (folder / "results").symlink_to(shared)
    hold_results(Path("results"))
    monkeypatch.chdir(second)
    me = f"process {os.getpid()} on {os.uname().nodename}, since "
    message = refusal(hold_results, Path("results"))
    says(message, f"{shared}: another snakemake makes these results ({me}")
    says(message, f", in {tmp_path}): wait until it ends, or end it (Ctrl-C, or kill")
    hold_results(Path("results/scales/demo"))  # of another scale
    run._held[0].close()  # as the process ends
    hold_results(Path("results"))
    lock = shared / ".run.lock"
    assert f"in {second}\n" in lock.read_text()
    assert lock.stat().st_mode & 0o777 == 0o664  # whoever may write the folder


def test_results_that_cannot_be_locked_are_left_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As somebody else's, of which a run only reads, or those on a disk without locks."""
    results = Path("results")
    monkeypatch.setattr(fcntl, "flock", without_locks)
    hold_results(results)
    hold_results(results)
    monkeypatch.setattr(Path, "open", failing(errno.EROFS))
    hold_results(results)
    monkeypatch.setattr(Path, "open", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        hold_results(results)


def test_jobs_of_an_earlier_run_are_waited_for(
    settings: Settings,
    tmp_path: Path,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    FOLDER.mkdir(parents=True)
    log = tmp_path / "a.log"
    of_run = os.environ | {RUN: "@here:1:2"}
    with subprocess.Popen(job_command(log, "time.sleep(2)"), env=of_run):
        wait_for(lambda: log.exists() and "at work" in log.read_text())
        begin_run(settings)
        assert "done in" in log.read_text()
    waits, ended = capfd.readouterr().err.splitlines()
    assert waits.startswith(f"{WAITS}jobs that run ")
    assert ended == "all have ended: the same command starts again"
    assert restarts == [(sys.executable, [sys.executable, *sys.orig_argv[1:]])]


@pytest.fixture
def squeue(tmp_path: Path) -> Callable[[str], None]:
    """Writes a program in Slurm's place, which runs a command when it is asked first."""
    Path(".snakemake/slurm_logs").mkdir(parents=True)  # as of a run on Slurm
    program = tmp_path / "bin/squeue"
    program.parent.mkdir()

    def write(command: str) -> None:
        asked = tmp_path / "asked"
        program.write_text(
            f"#!/bin/sh\n[ -e {asked} ] && exit\n: > {asked}\n{command}\n"
        )
        program.chmod(0o755)

    return write


QUEUE = """
12|PENDING|HERE|rule_train_model_wildcards_demo
13|RUNNING|HERE|group_text
14|RUNNING|HERE/elsewhere|rule_train_model
15|RUNNING|HERE|of the user
16|RUNNING|HERE|rule_of_this_process
"""


def test_jobs_that_wait_in_slurm_are_waited_for(
    settings: Settings,
    squeue: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    squeue(f"echo '{QUEUE.strip().replace('HERE', str(Path.cwd()))}'")
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


def test_a_slurm_that_does_not_answer_is_waited_for_where_a_run_on_slurm_has_been(
    settings: Settings,
    squeue: Callable[[str], None],
    restarts: Commands,
    capfd: pytest.CaptureFixture[str],
) -> None:
    squeue("exit 1")
    logs = Path(".snakemake/slurm_logs").rename("elsewhere")
    begin_run(settings)
    assert restarts == []
    logs.rename(".snakemake/slurm_logs")
    run._held.pop().close()
    begin_run(settings)
    assert f"{WAITS}jobs of Slurm, which does not" in capfd.readouterr().err
    assert len(restarts) == 1


def test_without_locks_of_the_file_system_slurm_alone_is_asked(
    settings: Settings,
    squeue: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    restarts: Commands,
) -> None:
    monkeypatch.setattr(fcntl, "flock", without_locks)
    begin_run(settings)
    assert restarts == []
    squeue(f"echo '12|RUNNING|{Path.cwd()}|rule_train_model'")
    begin_run(settings)
    with living_job():
        assert len(restarts) == 1


def test_the_locks_are_those_that_nfs_grants(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nfs4_proc_lock of Linux: a shared lock is a reader's, an exclusive one a writer's."""
    asked = []

    def flock(file: IO[str], operation: int) -> None:
        asked.append(operation & ~fcntl.LOCK_NB)
        has = file.readable() if operation & fcntl.LOCK_SH else file.writable()
        if not has:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    with living_job():
        assert asked == []  # as of no run
    begin_run(settings)
    with living_job():
        assert asked == [fcntl.LOCK_EX, fcntl.LOCK_EX, fcntl.LOCK_SH]


def test_a_mirror_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    missing = str(tmp_path / "unmounted")
    mirrors = (str(tmp_path), "https://mirror.example/of", missing)
    options = settings.options.model_copy(update={"mirrors": mirrors})
    message = refusal(begin_run, replace(settings, options=options))
    says(message, "mirrors: ", missing, "no such folder", "mount it")


# Nothing is said of what an extension prepares, or Moses has a list for.
WARNINGS = """
zh => moses_train => 'zh' has no blanks between words
yue => moses_train => 'yue' has no blanks between words
rom => moses_train => 'rom' has no list of ... use that code
tr_title => moses_train => 'tr_title' has no list of abbreviations
ko => moses_train => no list of abbreviations ... spaces between words stay
te => wmt16 => 'te': words are not cut at the signs
zh => none =>
zh => analyzer =>
tr => analyzer =>
"""


def test_text_that_the_preparation_does_not_suit_is_told_of(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = yaml.safe_load(TASK.replace("target: fr", "target: zh"))
    mine = Task.model_validate(stated).named("mine")
    begin_run(replace(settings, tasks={**settings.tasks, "mine": mine}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"warning: mine: {preparation_warning('zh', 'moses_train')}"
    for code, preparation, words in rows(WARNINGS):
        warning = preparation_warning(code, preparation)
        assert bool(warning) == bool(words)
        says(warning or "", words)
    of_india = {"as", "bn", "gu", "hi", "kn", "ml", "mni", "mr", "or", "pa", "ta", "te"}
    for code in {*NonbreakingPrefixes().available_langs.values()} - {"zh", "yue"}:
        warning = preparation_warning(code, "moses_train")
        assert (warning is not None) == (code in of_india)
