"""What Snakemake's executors are told at the start of a run."""

import sys
from typing import Any

from convs2s.pipeline.tries import count_tries

SLURM = "snakemake_executor_plugin_slurm"


def prepare_executors(scheduler: Any, rule: str) -> None:
    """Count the tries of a rule's jobs by progress, and lose no job that Slurm did not tell of."""
    count_tries(scheduler, rule)
    keep_unanswered_jobs()


def keep_unanswered_jobs() -> None:
    """Have Snakemake's Slurm plugin ask again later, where Slurm does not answer.

    Where all its attempts at one time fail, as while slurmctld starts again, the plugin forgets all
    running jobs, and Snakemake waits for ever (snakemake_executor_plugin_slurm 2.8,
    ``Executor.check_active_jobs``; its issue 207). It keeps a job that an answer does not name.
    """
    if (plugin := sys.modules.get(SLURM)) is None:
        return
    query = plugin.query_job_status

    async def query_or_keep(command: str, logger: Any) -> tuple[dict[str, str], float]:
        """Return what Slurm answers, or that no job has changed."""
        states, seconds = await query(command, logger)
        if states is None:
            logger.warning(
                f"Slurm does not answer: {command.split()[0]} failed; the jobs are kept, and asked "
                "for again (docs/cluster.md)"
            )
            return {}, 0.0
        return states, seconds

    plugin.query_job_status = query_or_keep  # type: ignore[attr-defined]
