"""What running processes do: where they listen, and when something is so."""

import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import psutil


def listening(process: int) -> list[bool]:
    """For each socket at which a process listens: whether it is on the loopback interface."""
    found = psutil.Process(process).net_connections("inet")
    places = [one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN]
    return [ip_address(place).is_loopback for place in places]


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for five minutes at most."""
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


_JOB = """
import os, sys, time
from types import SimpleNamespace
from convs2s.errors import UserError
from convs2s.pipeline.job import job
with job(SimpleNamespace(log=[sys.argv[1]], input=[], output=[], params={})):
    print("at work", flush=True)
    exec(sys.argv[2])
print("over")
"""


def job_command(log: Path, work: str) -> list[str]:
    """Return the command that says `at work` to the log and then does the work, which is Python."""
    return [sys.executable, "-c", _JOB, str(log), work]
