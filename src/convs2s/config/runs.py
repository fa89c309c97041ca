"""Names of runs: ``seed3`` is one model, ``ensemble3`` is seeds 1 to 3 together."""

import re
from collections.abc import Iterable
from typing import Annotated

from convs2s.config.section import Expecting

_ENSEMBLE = "ensemble"

# Without leading zeros, so that each seed has one name.
SEED_PATTERN = "0|[1-9][0-9]{0,8}"
MOST_SEED = 999_999_999

RUN_PATTERN = f"seed({SEED_PATTERN})|ensemble([2-9]|[1-9][0-9])"
"""Regular expression for the name of a trained run; a released model's run is ``released``."""

RunName = Annotated[
    str,
    Expecting(
        "expected seedN, or ensembleN with N of 2 to 99", pattern=f"^({RUN_PATTERN})$"
    ),
]
"""The name of a run as config/paper.yaml states it."""


def alternatives(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these names.

    If there are no names, it matches nothing, not even an empty string.
    """
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def members(run: str) -> list[str]:
    """Return the runs of the models in a run: seed1 and seed2 for ``ensemble2``.

    A run that is not an ensemble is one model, and is the only item of the list.
    """
    if not run.startswith(_ENSEMBLE):
        return [run]
    count = int(run.removeprefix(_ENSEMBLE))
    return [f"seed{seed}" for seed in range(1, count + 1)]


def limited_ensemble(run: str, seeds: int | None) -> str:
    """Return a run with its ensemble limited to ``seeds`` models; None sets no limit.

    An ensemble of one model is the run seed1. A run that is not an ensemble is returned unchanged.
    """
    if seeds is None or not run.startswith(_ENSEMBLE):
        return run
    models = min(len(members(run)), seeds)
    return f"{_ENSEMBLE}{models}" if models > 1 else "seed1"
