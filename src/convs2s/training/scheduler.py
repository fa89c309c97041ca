"""Information from environment variables: the scheduler's job, and the run of the workflow.

The rules import this module each time that Snakemake starts, so it imports no library.
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
"""Scheduler -> an environment variable that it sets in each of its jobs.

All of these schedulers end a job at its time limit.
"""

END_OF_SLURM_JOB = "SLURM_JOB_END_TIME"
"""Variable of Slurm, from 23.02 on: when it will end the job, in seconds since 1970."""


def begin_run() -> None:
    """Set the variable CONVS2S_RUN, by which jobs know the run of the workflow they belong to.

    A process inside of such a job keeps the variable, and so the run, of its job.
    """
    process = f"{os.uname().nodename}:{os.getpid()}:{time.time_ns()}"
    os.environ.setdefault(RUN, f"{os.environ.get(SCHEDULERS['Slurm'], '')}@{process}")


def is_in_a_job() -> bool:
    """Return whether this process is in a scheduler's job."""
    return any(name in os.environ for name in SCHEDULERS.values())


def end_of_job() -> float | None:
    """Return when Slurm will end this job, in seconds since 1970; None if it is unknown."""
    stated = os.environ.get(END_OF_SLURM_JOB, "")
    return float(stated) if stated.isdecimal() else None


def own_slurm_job() -> str | None:
    """Return the number of the Slurm job that was submitted for this work alone, or None.

    If Snakemake itself runs in a Slurm job, its local jobs run in the same Slurm job, which must
    not be requeued for one of them. For these the result is None.
    """
    job = os.environ.get(SCHEDULERS["Slurm"])
    job_of_snakemake = os.environ.get(RUN, "").partition("@")[0]
    return None if job == job_of_snakemake else job
