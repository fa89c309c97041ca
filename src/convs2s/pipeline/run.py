"""A run of the workflow: one at a time in a folder, after the jobs that an earlier one left.

Snakemake's own lock files outlive a Snakemake that was killed, so profiles/default has `nolock`,
and these are locks of the kernel's, which die with their process. Jobs share a second one. Jobs
that wait in Slurm's queue hold none: Slurm itself knows in which folder they will work.
"""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from convs2s.config.file_reference import masked
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.errors import UserError
from convs2s.files.locks import PATIENT, try_lock
from convs2s.pipeline.living import FOLDER, JOBS_LOCK
from convs2s.training import scheduler

_SECONDS_BETWEEN_LOOKS = 10.0
_ANSWER_SECONDS = 60.0  # how long Slurm may take to answer
# Chinese, Japanese, Thai, Lao, Khmer, Burmese.
_WITHOUT_BLANKS = {"zh", "ja", "th", "lo", "km", "my"}
# The codes of three letters for which Moses has a list of abbreviations; all others have two.
_OF_THREE_LETTERS = {"mni", "tdt", "yue"}
_held: list[IO[str]] = []  # for as long as this process lives


def begin_run(settings: Settings) -> None:
    """Begin a run in this folder, once no job of an earlier one is left.

    If jobs were waited for, this process starts again: what it had planned is made by now.

    Raises:
        UserError: another process runs the workflow here already, or a mirror is missing.
    """
    for mirror in settings.options.mirrors:
        if "://" not in mirror and not Path(mirror).is_dir():
            raise UserError(
                f"mirrors: {masked(mirror)}: no such folder: mount it, or take it out "
                "of the configuration"
            )
    check_folder()
    with suppress(NotImplementedError):
        _hold_folder()
        if _waited_for_jobs():
            print("all have ended: the same command starts again", file=sys.stderr, flush=True)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    scheduler.begin_run()
    # Notes of local copies outlive them, and another machine may have stored other files since.
    for note in Path(".snakemake/storage").rglob(".*.sha256"):
        note.unlink(missing_ok=True)
    for line in task_warnings(settings.tasks.values()):
        print(f"warning: {line}", file=sys.stderr)


def check_folder() -> None:
    """Check that this folder can be written, as Snakemake would end with a traceback.

    Raises:
        UserError: it cannot be written.
    """
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "run.lock").open("a").close()
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        raise UserError(
            f"{FOLDER.parent.absolute()}: cannot be written: {error.strerror}: Snakemake keeps its "
            "records here, also of a plan (-n): ask its owner, or copy the folder and plan there; "
            "convs2s status needs to read alone"
        ) from None


def _hold_folder() -> None:
    """Take this folder for this process; a NotImplementedError says that it has no locks."""
    me = f"process {os.getpid()} on {os.uname().nodename}, since {time.strftime('%F %H:%M:%S')}"
    lock = (FOLDER / "run.lock").open("a+")  # also to read: else NFS shares no lock
    if not _locked(lock):
        lock.seek(0)
        holder = lock.readline(200).strip() or "another process"
        raise UserError(
            f"{Path.cwd()}: another snakemake runs here ({holder}): wait until it ends, or end it "
            "(Ctrl-C, or kill PROCESS)"
        )
    lock.truncate(0)
    lock.write(f"{me}\n")
    lock.flush()
    _held.append(lock)


def _locked(lock: IO[str]) -> bool:
    """Return whether a lock could be had for this process alone."""
    try:
        return try_lock(lock, tries=PATIENT)
    except OSError as error:  # such as ENOLCK: a file system without locks
        raise NotImplementedError(str(error)) from None


def _waited_for_jobs() -> bool:
    """Wait until no job of an earlier run lives; return whether one did."""
    said = ""
    while True:
        # The lock is not held between two looks: a queued job that starts then would wait for it.
        with JOBS_LOCK.open("a+") as jobs:
            is_free = _locked(jobs)
        living = list(_slurm_jobs(Path.cwd()))
        if not is_free:
            living.append("jobs that run")
        if not living:
            return bool(said)
        if said != ", ".join(living):
            said = ", ".join(living)
            print(
                f"waiting for jobs of an earlier run in this folder: {said} (end them by "
                "scancel or kill to begin anew; trainings go on from their states)",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _slurm_jobs(folder: Path) -> Iterator[str]:
    """Yield the user's jobs in Slurm, queued ones too, that work in a folder where it was used."""
    if shutil.which("squeue") is None or not (folder / ".snakemake/slurm_logs").is_dir():
        return
    asked = ["squeue", "--me", "--noheader", "--format=%i|%T|%Z|%k"]
    try:
        answer = subprocess.run(
            asked, capture_output=True, text=True, check=True, timeout=_ANSWER_SECONDS
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        yield "those of Slurm, which does not answer"
        return
    own = os.environ.get("SLURM_JOB_ID")  # where this process is a job itself
    for line in answer.stdout.splitlines():
        number, state, place, comment = line.split("|", 3)
        if number != own and Path(place) == folder and comment.startswith(("rule_", "group_")):
            yield f"Slurm job {number} ({state}, {comment})"


def task_warnings(tasks: Iterable[Task]) -> list[str]:
    """Return what a user should know of tasks that would run all the same, a line each."""
    lines = []
    for task in tasks:
        if task.text is not None or task.preparation.train == "none":
            continue
        for language in task.language_pair:
            code = language.partition("_")[0]
            if code in _WITHOUT_BLANKS:
                lines.append(
                    f"{task.name}: text in '{language}' has no blanks between words, and no "
                    "preparation here splits it: split it yourself and state `preparation: {train: "
                    "none, test: none}` (docs/own_language_pair.md)"
                )
            elif len(code) > 2 and code not in _OF_THREE_LETTERS:
                lines.append(
                    f"{task.name}: '{language}' has no list of abbreviations: those of English are "
                    "taken (docs/preparation.md); a language goes by its code of two letters where "
                    "it has one, such as ro for Romanian"
                )
    return lines
