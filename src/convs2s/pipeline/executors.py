"""What becomes of jobs that fail, and of those that a cluster does not answer for.

Failed trainings are tried again: without limit while they make progress, else three times.
Snakemake counts all tries of a job, so a training of weeks would end with its third time limit. It
also counts a submission that a cluster refused, though nothing has run that needs more.
"""

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

SLURM = "snakemake_executor_plugin_slurm"

STATES = "state/*/last.safetensors"
"""A training's states beside its model; written after an update or at an epoch's end alone."""

_REFUSALS, _REFUSED_SECONDS = 30, 60.0
"""How often in a row a job is submitted again, each time after so long: others end meanwhile."""

_PREEMPTED_ANSWERS = 3  # in a row, after which Slurm has not queued the job again


class Tries:
    """How often each training of a run has failed in a row without having made progress.

    And how often in a row each job could not be submitted.
    """

    def __init__(self, rule: str) -> None:
        """Count the jobs of this rule, whose first output is the model."""
        self._rule = rule
        self._seen = time.time_ns()  # what was saved before is no progress
        self._fruitless: dict[Path, int] = {}
        self._saved: dict[Path, int] = {}
        self._submitted: set[Any] = set()
        self._refused: Counter[Any] = Counter()
        self._is_accepting = False  # whether the cluster has taken a job; else the request is wrong

    def note_submission(self, job: Any) -> None:
        """Note that a job runs, here or in the queue of a cluster."""
        self._submitted.add(job)
        self._is_accepting |= not job.is_local
        del self._refused[job]

    def count(self, job: Any) -> bool:
        """Count a failed job, and have Snakemake start it again or not; return whether at once.

        A job starts again while ``attempt`` is at most ``restart_times``, and with ``attempt`` one
        higher, by which memory grows. One that made progress had enough, and starts as it was. So
        does one that was not submitted.
        """
        if job.is_group() or not job.restart_times:
            return True
        if job not in self._submitted:
            self._refused[job] += 1
            ends = self._refused[job] > (_REFUSALS if self._is_accepting else job.restart_times)
            job.attempt = job.restart_times + 1 if ends else job.attempt - 1
            return ends or not self._is_accepting
        self._submitted.remove(job)
        if job.rule.name != self._rule:
            return True
        folder = Path(job.output[0]).parent
        saved = max((path.stat().st_mtime_ns for path in folder.glob(STATES)), default=0)
        has_progress = saved > self._saved.get(folder, self._seen)
        self._saved[folder] = max(saved, self._saved.get(folder, self._seen))
        self._fruitless[folder] = 0 if has_progress else self._fruitless.get(folder, 0) + 1
        if self._fruitless[folder] > job.restart_times:
            job.attempt = max(job.attempt, job.restart_times + 1)
        else:
            job.attempt = min(job.attempt - has_progress, job.restart_times)
        return True


def count_tries(scheduler: Any, rule: str) -> None:
    """Have Snakemake's scheduler count a rule's tries by progress from now on.

    Every executor tells the scheduler of a submitted job by its method ``submit_callback``, and of
    a failed one by ``error_callback`` (snakemake_interface_executor_plugins, ``AbstractExecutor``).
    """
    tries = Tries(rule)
    report, report_submitted = scheduler.error_callback, scheduler.submit_callback

    def report_failed(job: Any) -> None:
        if tries.count(job):
            report(job)
            return
        later = threading.Timer(_REFUSED_SECONDS, report, [job])
        later.daemon = True
        later.start()

    def note_submitted(job: Any) -> None:
        tries.note_submission(job)
        report_submitted(job)

    scheduler.error_callback, scheduler.submit_callback = report_failed, note_submitted


def record_no_failures(jobs: type[Any], records: type[Any]) -> None:
    """Have Snakemake leave its record of a failed job as it was; takes its classes of both.

    It writes down of a failed job what it writes of one that ended well, then removes its outputs:
    a next run would find nothing out of date, and keep what was made of the outputs before
    (snakemake 9.27, ``Job.postprocess``). A module asks once for each of its ``use rule``.
    """
    process, record, failed = jobs.postprocess, records.finished, set[Any]()
    if process.__module__ == __name__:
        return

    async def process_ended(job: Any, *options: Any, error: bool = False, **named: Any) -> None:
        (failed.add if error else failed.discard)(job)
        await process(job, *options, error=error, **named)

    async def record_ended(persistence: Any, job: Any) -> None:
        if job not in failed:
            await record(persistence, job)

    jobs.postprocess, records.finished = process_ended, record_ended


def keep_unanswered_jobs() -> None:
    """Have Snakemake's Slurm plugin ask again later, where Slurm does not answer.

    Where all its attempts at one time fail, as while slurmctld starts again, the plugin forgets all
    running jobs, and Snakemake waits for ever (snakemake_executor_plugin_slurm 2.8,
    ``Executor.check_active_jobs``; its issue 207). It keeps a job that an answer does not name, and
    one that is preempted: Slurm may queue it again. One that stays so has ended (mode CANCEL).
    """
    if (plugin := sys.modules.get(SLURM)) is None:
        return
    query, preempted = plugin.query_job_status, Counter[str]()

    async def query_or_keep(command: str, logger: Any) -> tuple[dict[str, str], float]:
        """Return what Slurm answers, or that no job has changed."""
        states, seconds = await query(command, logger)
        if states is None:
            logger.warning(
                f"Slurm does not answer: {command.split()[0]} failed; the jobs are kept, and asked "
                "for again (docs/cluster.md)"
            )
            return {}, 0.0
        # sacct says who has cancelled a job, which the plugin does not take for its end.
        states = {job: state.partition(" ")[0] for job, state in states.items()}
        for job, state in states.items():
            preempted[job] = preempted[job] + 1 if state == "PREEMPTED" else 0
        ended = {job: "CANCELLED" for job in states if preempted[job] >= _PREEMPTED_ANSWERS}
        return states | ended, seconds

    plugin.query_job_status = query_or_keep  # type: ignore[attr-defined]
