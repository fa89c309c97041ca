"""Failed trainings are tried again: without limit while they make progress, else three times.

Snakemake counts all tries of a job, so a training of weeks would end with its third time limit.
"""

import time
from pathlib import Path
from typing import Any

STATES = "state/*/last.safetensors"
"""A training's states beside its model; written after an update or at an epoch's end alone."""

_COUNTED: set[str] = set()  # rules of this process's one scheduler


class Tries:
    """How often each training of a run has failed in a row without having made progress."""

    def __init__(self, rule: str) -> None:
        """Count the jobs of this rule, whose first output is the model."""
        self._rule = rule
        self._seen = time.time_ns()  # what was saved before is no progress
        self._fruitless: dict[Path, int] = {}
        self._saved: dict[Path, int] = {}

    def count(self, job: Any) -> None:
        """Count a failed job, and have Snakemake start it again or not.

        A job starts again while ``attempt`` is at most ``restart_times``, and with ``attempt`` one
        higher, by which memory grows. One that made progress had enough, and starts as it was.
        """
        if job.is_group() or job.rule.name != self._rule or not job.restart_times:
            return
        folder = Path(job.output[0]).parent
        saved = max((path.stat().st_mtime_ns for path in folder.glob(STATES)), default=0)
        has_progress = saved > self._saved.get(folder, self._seen)
        self._saved[folder] = max(saved, self._saved.get(folder, self._seen))
        self._fruitless[folder] = 0 if has_progress else self._fruitless.get(folder, 0) + 1
        if self._fruitless[folder] > job.restart_times:
            job.attempt = max(job.attempt, job.restart_times + 1)
        else:
            job.attempt = min(job.attempt - has_progress, job.restart_times)


def count_tries(scheduler: Any, rule: str) -> None:
    """Have Snakemake's scheduler count a rule's tries by progress from now on.

    Every executor tells the scheduler of a failed job by its method ``error_callback``
    (snakemake_interface_executor_plugins, ``AbstractExecutor.report_job_error``). A module is read
    once for each of its ``use rule``, and asks as often.
    """
    if rule in _COUNTED:
        return
    _COUNTED.add(rule)
    tries, report = Tries(rule), scheduler.error_callback

    def report_failed(job: Any) -> None:
        tries.count(job)
        report(job)

    scheduler.error_callback = report_failed
