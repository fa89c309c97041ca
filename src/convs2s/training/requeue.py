"""Requeue the Slurm job of a long training that stops early, for example at its time limit.

The job keeps its number. So Snakemake goes on waiting for it, and does not count a failed attempt.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which

from convs2s.errors import UnfinishedError
from convs2s.training.scheduler import own_slurm_job

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


@contextmanager
def queueing_again() -> Iterator[None]:
    """Requeue this Slurm job if the block raises an UnfinishedError.

    Slurm then kills this process, so the block's error is printed first. If there is nothing to
    requeue, the block's error is raised: this process is not in a Slurm job of its own, scontrol is
    missing, or the job is not in the state RUNNING, because it was cancelled or, after a
    preemption, requeued.

    Raises:
        UnfinishedError: There is nothing to requeue, Slurm refuses, or it does not end the job.
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
        print(
            f"convs2s: asking Slurm to queue job {job} again",
            file=sys.stderr,
            flush=True,
        )
        setting = "Requeue=1" if "Requeue=1" in words else "Requeue=0"
        # Slurm ends this process by SIGTERM. Replace torchrun's handler, which raises an exception.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        answer = shown
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
