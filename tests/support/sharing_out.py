"""How the tests are shared out between processes (``make test``, pytest-xdist)."""

import os
from collections.abc import Sequence

import pytest

MOST_PROCESSES = 8
"""Each takes about 1 GB of memory, and runs that last a minute or more bound what is gained."""

LONG = ("tests/cluster/", "tests/workflow/")
"""Folders whose tests come first: they run for minutes, and short ones fill up what is left."""


def processes() -> int:
    """Return how many processes to run tests in: one for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, MOST_PROCESSES)


def sorted_for_sharing(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which processes are to take them."""
    return sorted(items, key=lambda item: not item.nodeid.startswith(LONG))


def group_of(item: pytest.Item) -> str | None:
    """Return the name of the tests that are to run in one process, or None for one by itself.

    Those of a file share its fixtures, those of several files the first run of one's own language
    pair. Tests that start with a checkout of their own have nothing to share; of Slurm there is one
    at a time.
    """
    fixtures = getattr(item, "fixturenames", ())
    if "first_run" in fixtures:
        return "first_run"
    if "checkout" in fixtures and "slurm" not in fixtures:
        return None
    return item.nodeid.partition("::")[0]
