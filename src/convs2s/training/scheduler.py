"""The scheduler's job that this process is in: what is known about it, and how it is requeued.

The Slurm job of a long training is requeued if the training stops early, for example at its time
limit. The job keeps its number, so Snakemake goes on waiting for it and counts no failed attempt.

The rules import this module each time that Snakemake starts, so it imports no library.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which

from convs2s.errors import UnfinishedError
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

_QUEUE_AGAIN = """\
trap '' TERM
scontrol update JobId="$1" Requeue=1 && scontrol requeue "$1"
code=$?
scontrol update JobId="$1" "$2" 2> /dev/null
exit $code
"""
"""Shell script that requeues the job $1 and then restores its setting $2, Requeue=0 or Requeue=1.

Slurm requeues only jobs with Requeue=1. A job of ``sbatch --no-requeue`` has Requeue=0, so that it
is not started again after the failure of a node; this must hold again afterwards. Slurm sends
SIGTERM to all processes of a requeued job, so the script ignores SIGTERM.
"""

_ANSWER_SECONDS = 60.0  # how long Slurm may take to answer a command

_END_SECONDS = 300.0  # how long Slurm may take to end a job that it has requeued


def begin_run() -> None:
    """Set the variable CONVS2S_RUN, which tells jobs to which run of the workflow they belong.

    A process inside of such a job keeps the variable of its job, and so belongs to the same run.
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


@contextmanager
def queueing_again() -> Iterator[None]:
    """Requeue this Slurm job if the block raises an UnfinishedError.

    Slurm then kills this process, so the error of the block is printed first. The error is raised
    instead if this process is not in a Slurm job of its own, if scontrol is missing, or if the job
    is not in the state RUNNING: it was cancelled, or was preempted and requeued already.

    Raises:
        UnfinishedError: The job is not requeued, or Slurm has requeued the job but does not end it.
    """
    try:
        yield
    except UnfinishedError as error:
        job = own_slurm_job()
        if job is None or which("scontrol") is None:
            raise
        shown = _answer("scontrol", "--oneliner", "show", "job", job)
        words = shown.stdout.split()
        if shown.returncode == 0 and "JobState=RUNNING" not in words:
            raise
        print(f"convs2s: {error}", file=sys.stderr)
        print(f"convs2s: asking Slurm to queue job {job} again", file=sys.stderr)
        setting = "Requeue=1" if "Requeue=1" in words else "Requeue=0"
        # Slurm ends this process by SIGTERM. Replace torchrun's handler, which raises an exception.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        answer = shown  # reported below if it failed
        if shown.returncode == 0:
            answer = _answer("sh", "-c", _QUEUE_AGAIN, "sh", job, setting)
        if answer.returncode != 0:
            reason = " ".join(answer.stderr.split())
            raise UnfinishedError(
                f"Slurm does not queue job {job} again: {reason}"
            ) from None
        time.sleep(_END_SECONDS)
        raise UnfinishedError(
            f"Slurm has queued job {job} again, but does not end it"
        ) from None


def _answer(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result; a command that takes too long has exit code 1."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "no answer in time")
