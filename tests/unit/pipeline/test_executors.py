"""What Snakemake's Slurm plugin does with jobs while Slurm does not answer."""

import asyncio
import logging
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from convs2s.pipeline.executors import keep_unanswered_jobs


def test_a_job_is_kept_while_slurm_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    for name in ("squeue", "sacct", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(plugin, "query_job_status", plugin.query_job_status)
    keep_unanswered_jobs()
    settings = SimpleNamespace(
        status_command="squeue", status_attempts=2, init_seconds_before_status_checks=20
    )
    executor: Any = SimpleNamespace(
        workflow=SimpleNamespace(executor_settings=settings),
        logger=logging.getLogger("executor"),
        get_status_command=lambda: "squeue",
        run_uuid="run",
        status_rate_limiter=nullcontext(),
        next_seconds_between_status_checks=20,
        _status_query_calls=0,
        _status_query_total_seconds=0.0,
        _status_query_min_seconds=None,
        _status_query_max_seconds=0.0,
        _status_query_failures=0,
        _status_query_cycle_rows=[],
    )
    job = SimpleNamespace(external_jobid="7", aux={})

    async def kept() -> list[object]:
        return [each async for each in plugin.Executor.check_active_jobs(executor, [job])]

    assert subprocess.run(["squeue"], check=False).returncode == 1
    assert asyncio.run(kept()) == [job]
    assert "Slurm does not answer: sacct failed; the jobs are kept" in caplog.text
