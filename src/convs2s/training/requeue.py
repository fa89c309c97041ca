"""A training of weeks on Slurm: its job queues itself again where it stops before the end.

The job keeps its number, so that Snakemake goes on waiting for it and counts no try.
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
"""What has Slurm queue a job again, also one of ``sbatch --no-requeue``, which is to end where a
node fails: that holds again afterwards. Slurm sends SIGTERM to all of the job meanwhile."""

_ANSWER_SECONDS = 60.0  # how long Slurm may take to answer

_END_SECONDS = 300.0  # how long Slurm may take to end a job that it has queued again


@contextmanager
def queueing_again() -> Iterator[None]:
    """Have Slurm queue this job again where the block ends with an UnfinishedError.

    It is raised all the same outside of a running job of Slurm: also of one that was cancelled or
    is queued again already, as after a preemption. Where Slurm refuses, another one says so.
    """
    try:
        yield
    except UnfinishedError as error:
        job = own_slurm_job()
        if job is None or which("scontrol") is None:
            raise
        shown = _answer("scontrol", "--oneliner", "show", "job", job)
        words = shown.stdout.split()
        if not shown.returncode and "JobState=RUNNING" not in words:
            raise
        print(f"convs2s: {error}", file=sys.stderr)
        print(f"convs2s: asking Slurm to queue job {job} again", file=sys.stderr, flush=True)
        before = "Requeue=1" if "Requeue=1" in words else "Requeue=0"
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # of which torchrun makes an exception
        answer = shown if shown.returncode else _answer("sh", "-c", _QUEUE_AGAIN, "sh", job, before)
        if answer.returncode:
            reason = " ".join(answer.stderr.split())
            raise UnfinishedError(f"Slurm does not queue job {job} again: {reason}") from None
        time.sleep(_END_SECONDS)
        raise UnfinishedError(f"Slurm has queued job {job} again, but does not end it") from None


def _answer(*command: str) -> subprocess.CompletedProcess[str]:
    """Return what a command answers; one that takes too long has failed."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "no answer in time")
