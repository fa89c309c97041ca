"""What a job shows of itself to a later run in the same folder, and to itself of its run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from convs2s.files.locks import wait_for_lock

RUN = "CONVS2S_RUN"
"""Environment variable: the run of the workflow that a process is part of, as JOB@PROCESS: the
Slurm job in which Snakemake itself runs, or nothing, and its own process."""

FOLDER = Path(".snakemake/convs2s")
"""Where the workflow keeps what is of this folder's runs alone."""

JOBS_LOCK = FOLDER / "jobs.lock"
"""Shared by the jobs that live; a run that can have it alone is the only one."""


@contextmanager
def living_job() -> Iterator[None]:
    """Show to a later run in this folder that a job of this one lives, until the block ends."""
    if RUN not in os.environ or not FOLDER.is_dir():
        yield
        return
    with JOBS_LOCK.open("a+") as jobs:
        with suppress(OSError):  # a file system without locks
            wait_for_lock(jobs, shared=True)
        yield
