"""How the tests are shared out between processes (``make test``, pytest-xdist)."""

import os
from collections.abc import Sequence
from typing import Any

import pytest

MOST_PROCESSES = 8
"""Each takes about 1 GB of memory, and files that run a minute or more bound what is gained."""

LONG = ("tests/cluster/test_profiles.py", "tests/workflow/", "tests/cluster/")
"""What comes first, in this order: tests that run for minutes, and short ones fill up what is left.

Tests on a cluster wait for most of their time: files of them side by side leave cores idle.
"""

OF_FIRST_RUN = (
    "test_changed_files.py",
    "test_extensions.py",
    "test_fine_tuning.py",
    "test_interrupted.py",
    "test_own_pair.py",
    "test_paper_figures.py",
    "test_partial_paper.py",
    "test_records.py",
    "test_rerun.py",
    "test_tries.py",
    "test_user_faults.py",
)
"""Files that share the first run of one's own language pair."""


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
    """Return the tests in the order in which processes are to take them."""

    def place(item: pytest.Item) -> int:
        return next(
            (n for n, start in enumerate(LONG) if item.nodeid.startswith(start)),
            len(LONG),
        )

    return sorted(items, key=place)


def group_of(test: str) -> str:
    """Return the name of the tests that run in one process with a test, given by its identifier.

    Those of a file share its fixtures, those of some files the first run.
    """
    file = test.partition("::")[0]
    return "first run" if file.endswith(OF_FIRST_RUN) else file


def scheduler(config: pytest.Config, log: Any) -> object:
    """Return what hands out the groups, in the order of the tests.

    xdist's own marks of groups go unseen by pytest 9.2, which keeps identifiers in another way.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
