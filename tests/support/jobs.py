"""A job of the workflow in a process of its own."""

import sys
from pathlib import Path

_JOB = """
import os, sys, time
from types import SimpleNamespace
from convs2s.errors import UserError
from convs2s.pipeline.job import job
with job(SimpleNamespace(log=[sys.argv[1]], input=[], output=[], params={})):
    print("at work", flush=True)
    exec(sys.argv[2])
"""


def job_command(log: Path, work: str) -> list[str]:
    """Return the command that says `at work` to the log and then does the work, which is Python."""
    return [sys.executable, "-c", _JOB, str(log), work]
