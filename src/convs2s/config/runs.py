"""Names of runs: ``seed3`` is one model, ``ensemble3`` is seeds 1 to 3 together."""

import re
from collections.abc import Iterable
from typing import Annotated

from convs2s.config.section import Expecting

_ENSEMBLE = "ensemble"

SEED_PATTERN = "0|[1-9][0-9]{0,8}"  # what a seed looks like in a name; each seed has one name
MOST_SEED = 999_999_999

RUN_PATTERN = f"seed({SEED_PATTERN})|ensemble([2-9]|[1-9][0-9])"
"""What the name of a run that is trained looks like."""

RunName = Annotated[
    str, Expecting("expected seedN, or ensembleN with N of 2 to 99", pattern=f"^({RUN_PATTERN})$")
]
"""A run that config/paper.yaml can name."""


def alternatives(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these names, or nothing without names."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def members(run: str) -> list[str]:
    """Return the models of a run: ``ensemble2`` is seed1 and seed2, any other one is itself."""
    if not run.startswith(_ENSEMBLE):
        return [run]
    count = int(run.removeprefix(_ENSEMBLE))
    return [f"seed{seed}" for seed in range(1, count + 1)]


def of_at_most(run: str, seeds: int | None) -> str:
    """Return the run that stands for one where there are no more seeds; None sets no limit."""
    if seeds is None or not run.startswith(_ENSEMBLE):
        return run
    models = min(len(members(run)), seeds)
    return f"{_ENSEMBLE}{models}" if models > 1 else "seed1"
