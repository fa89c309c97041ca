"""The beginning of a run of the workflow.

Only one run at a time works in a folder, and it begins after all jobs of earlier runs have ended.
Snakemake's own lock files stay behind if Snakemake is killed, so profiles/default sets `nolock`.
In their place are locks of the kernel, which ends them with the process that holds them:

- ``run.lock`` is held exclusively by the run. Its first line names the process, its machine, its
  folder and the time when it began.
- ``.run.lock`` in the folder of the results (``RESULTS_LOCK``) is held by the run as well. Several
  clones may share that folder by a link, and each of their Snakemakes would remove the temporary
  files of the others.
- ``jobs.lock`` (``living.JOBS_LOCK``) is shared by all running jobs. The run takes it exclusively
  for a moment, to see whether any job holds it.

A job that still waits in Slurm's queue holds no lock. Slurm is asked for these jobs, because it
knows the folder in which each will work.
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
from convs2s.pipeline.outdated import keep_changes, remove_changes
from convs2s.text.languages import preparation_warning
from convs2s.training import scheduler

_SECONDS_BETWEEN_LOOKS = 10.0
_ANSWER_SECONDS = 60.0  # how long Slurm may take to answer

RESULTS_LOCK = ".run.lock"
"""Name of the lock file in the folder of the results."""

# Number of characters that are read at most from a lock file's line, which contains a path.
_LONGEST_HOLDER = 5000
# Errors of a folder in which this user cannot write.
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}
# Errors of a file system without locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
# Keeps the files of this run's locks open, and so locked, until the process ends.
_held: list[IO[str]] = []


def begin_run(settings: Settings) -> None:
    """Begin a run in the working directory, after the last job of earlier runs has ended.

    If there were such jobs, this process replaces itself by the same command, because its plan
    contains outputs that these jobs have made meanwhile. On a file system without locks, only jobs
    of Slurm are known. Warnings about tasks are printed on the standard error.

    Raises:
        UserError: another process runs the workflow here already, a mirror is missing, or the
            folder cannot be written.
    """
    for mirror in settings.options.mirrors:
        if "://" not in mirror and not Path(mirror).is_dir():
            raise UserError(
                f"mirrors: {masked(mirror)}: no such folder: mount it, or take it out "
                "of the configuration"
            )
    check_folder()
    # Open for reading, too: NFS requires it for a lock.
    lock = (FOLDER / "run.lock").open("a+")
    _hold(lock, f"{Path.cwd()}: another snakemake runs here")
    if _waited_for_jobs():
        print(
            "all have ended: the same command starts again", file=sys.stderr, flush=True
        )
        remove_changes()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    keep_changes()
    scheduler.begin_run()
    # When Snakemake removes its local copy of a file in a storage, the note of the file's checksum
    # stays. Another machine may have stored another file since, so the old notes are removed.
    for note in Path(".snakemake/storage").rglob(".*.sha256"):
        note.unlink(missing_ok=True)
    for line in task_warnings(settings.tasks.values()):
        print(f"warning: {line}", file=sys.stderr)


def check_folder() -> None:
    """Check that the working directory can be written.

    Without this check, Snakemake would print a traceback.

    Raises:
        UserError: it cannot be written.
    """
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "run.lock").open("a").close()
    except OSError as error:
        if error.errno not in _NO_ACCESS:
            raise
        raise UserError(
            f"{FOLDER.parent.absolute()}: cannot be written: {error.strerror}: Snakemake keeps its "
            "records there, even if it only plans (-n); ask the folder's owner for access, or copy "
            "the folder and run Snakemake in the copy; `convs2s status` needs no write access"
        ) from None


def hold_results(results: Path) -> None:
    """Lock the folder of the results for this process until the process ends.

    The folder may be a link, and other clones may have the same one. If nothing can be written
    there, as in somebody else's results, nothing is locked: the run cannot change them either.

    Raises:
        UserError: a run of another folder holds the lock.
    """
    path = results / RESULTS_LOCK
    try:
        results.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        if error.errno not in _NO_ACCESS:
            raise
        return
    # Everyone who may write to the folder may lock it, such as the other users of its group.
    with suppress(PermissionError):
        path.chmod(results.stat().st_mode & 0o666)
    _hold(lock, f"{results.resolve()}: another snakemake makes these results")


def _hold(lock: IO[str], refusal: str) -> None:
    """Lock an open file until the process ends, and write into it which process this is.

    Raises:
        UserError: another process holds the lock. The message begins with ``refusal``.
    """
    if not _try_to_lock(lock):
        lock.seek(0)
        holder = lock.readline(_LONGEST_HOLDER).strip() or "another process"
        raise UserError(
            f"{refusal} ({holder}): wait until it ends, or end it (Ctrl-C, or kill PROCESS)"
        )
    lock.truncate(0)
    me = f"process {os.getpid()} on {os.uname().nodename}, since {time.strftime('%F %H:%M:%S')}"
    lock.write(f"{me}, in {Path.cwd()}\n")
    lock.flush()
    _held.append(lock)


def _try_to_lock(lock: IO[str]) -> bool:
    """Lock a file exclusively; return False if another process holds a lock on it.

    On a file system without locks, return True.

    Raises:
        OSError: the lock failed for another reason, such as an I/O error.
    """
    try:
        return try_lock(lock, tries=PATIENT)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return True


def _waited_for_jobs() -> bool:
    """Wait until no job of an earlier run lives; return whether there was any.

    The jobs are listed on the standard error, and again when the list changes.
    """
    printed = ""
    while True:
        # Closing the file frees the lock at once, because a queued job may start and need it.
        with JOBS_LOCK.open("a+") as lock:
            is_free = _try_to_lock(lock)
        living = list(_slurm_jobs())
        if not is_free:
            living.append("jobs that run")
        if not living:
            return bool(printed)
        listed = ", ".join(living)
        if listed != printed:
            printed = listed
            print(
                f"waiting for jobs of an earlier run in this folder: {listed} (to begin without "
                "waiting, end them by scancel or kill; their trainings resume from saved states)",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _slurm_jobs() -> Iterator[str]:
    """Yield descriptions of the user's queued and running Slurm jobs of the working directory.

    Yield nothing if Slurm was never used in it.
    """
    was_used = Path(".snakemake/slurm_logs").is_dir()
    if not was_used or shutil.which("squeue") is None:
        return
    # Columns: number of the job, its state, its working directory, its comment.
    command = ["squeue", "--me", "--noheader", "--format=%i|%T|%Z|%k"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_ANSWER_SECONDS
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        yield "jobs of Slurm, which does not answer"
        return
    own = os.environ.get("SLURM_JOB_ID")  # set if Snakemake itself runs in a Slurm job
    for line in answer.stdout.splitlines():
        number, state, work_folder, comment = line.split("|", 3)
        # Snakemake's Slurm plugin sets the comments of its jobs.
        is_of_workflow = comment.startswith(("rule_", "group_"))
        if number != own and is_of_workflow and Path(work_folder) == Path.cwd():
            yield f"Slurm job {number} ({state}, {comment})"


def task_warnings(tasks: Iterable[Task]) -> list[str]:
    """Return a warning for each language of the tasks that the preparation does not support well.

    The tasks can run all the same. Tasks whose text is that of another task are skipped.
    """
    lines = []
    for task in tasks:
        if task.text is not None:
            continue
        for language in task.language_pair:
            if warning := preparation_warning(language, task.preparation.train):
                lines.append(f"{task.name}: {warning}")
    return lines
