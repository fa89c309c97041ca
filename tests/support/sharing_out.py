"""How the tests are shared out between processes (``make test``, pytest-xdist): whole files."""

import os
from collections.abc import Sequence

import pytest

MOST_PROCESSES = 8
"""Each takes about 1 GB of memory, and files that run a minute or more bound what is gained."""

SLURM = "tests/workflow/test_slurm_"
"""Files of tests on a cluster, which wait for most of their time."""

PROFILES = f"{SLURM}profiles.py"
"""The longest of them."""


def processes() -> int:
    """Return how many processes to run tests in: one for each core that this process may use.

    One more runs beside them, as tests on a cluster wait for most of their time.
    """
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    return min((cores or 1) + 1, MOST_PROCESSES)


def sorted_for_sharing(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which processes are to take them.

    Those that run for minutes come first; short ones fill up what is left.
    """

    def place(item: pytest.Item) -> int:
        if item.nodeid.startswith(PROFILES):
            return 0
        if item.nodeid.startswith(SLURM):
            return 2
        return 1 if item.nodeid.startswith("tests/workflow/") else 3

    return sorted(items, key=place)
