"""What jobs and runs of the workflow in one folder show each other.

- A run sets the environment variable ``RUN``, from which its jobs know their run.
- A job holds a shared lock on ``JOBS_LOCK``, from which a later run knows that jobs still live.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from convs2s.files.locks import wait_for_lock

RUN = "CONVS2S_RUN"
"""Environment variable that names the run of the workflow to which a process belongs.

Its value is ``JOB@PROCESS``. JOB is the Slurm job in which Snakemake itself runs, or empty. PROCESS
is the Snakemake process: machine, process number and time of its start (``scheduler.begin_run``).
"""

FOLDER = Path(".snakemake/convs2s")
"""Folder for files that the workflow keeps about the runs in the working directory."""

JOBS_LOCK = FOLDER / "jobs.lock"
"""Lock file whose content does not matter.

Each running job holds a shared lock on it. A run that can lock it exclusively knows that no job of
an earlier run lives.
"""


@contextmanager
def living_job() -> Iterator[None]:
    """Hold a shared lock on ``JOBS_LOCK`` while the block runs.

    The kernel frees it when this process dies. Outside of a run of the workflow, and on a file
    system without locks, the block just runs.
    """
    if RUN not in os.environ or not FOLDER.is_dir():
        yield
        return
    with JOBS_LOCK.open("a+") as lock:
        with suppress(OSError):  # a file system without locks
            wait_for_lock(lock, shared=True)
        yield
