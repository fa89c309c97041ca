"""What the environment says of the job that a training runs in, and of the run of the workflow.

The rules load it, and so no library.
"""

import os
import time

from convs2s.pipeline.living import RUN

SCHEDULERS = {
    "Slurm": "SLURM_JOB_ID",
    "PBS": "PBS_JOBID",
    "LSF": "LSB_JOBID",
    "Grid Engine": "SGE_TASK_ID",
    "HTCondor": "_CONDOR_JOB_AD",
    "Kubernetes": "KUBERNETES_SERVICE_HOST",
}
"""Schedulers, which end a job at its time limit -> a variable that each sets in all of its jobs."""

END_OF_SLURM_JOB = "SLURM_JOB_END_TIME"
"""Slurm's variable, from 23.02 on, with when it ends a job, in seconds since 1970."""


def begin_run() -> None:
    """Name this run of the workflow to its jobs, unless this process is in one of them itself."""
    process = f"{os.uname().nodename}:{os.getpid()}:{time.time_ns()}"
    os.environ.setdefault(RUN, f"{os.environ.get(SCHEDULERS['Slurm'], '')}@{process}")


def is_in_a_job() -> bool:
    """Return whether a scheduler has started this process, in a job that it ends in time."""
    return any(name in os.environ for name in SCHEDULERS.values())


def end_of_job() -> float | None:
    """Return when the scheduler ends this job, in seconds since 1970; None if it does not say."""
    stated = os.environ.get(END_OF_SLURM_JOB, "")
    return float(stated) if stated.isdecimal() else None


def own_slurm_job() -> str | None:
    """Return the number of the Slurm job that does nothing but this work; None without one.

    Where Snakemake itself runs in a job, its local jobs share that one.
    """
    job = os.environ.get(SCHEDULERS["Slurm"])
    return None if job == os.environ.get(RUN, "").partition("@")[0] else job
