"""What stands in for the paper's tasks, models, test sets and runs at a scale (config/scales)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Scale = Mapping[str, Any]


def task(scale: Scale, name: str) -> str:
    """Return the task that stands in for one of the paper's."""
    return str(scale["tasks"].get(name, name))


def model(scale: Scale, name: str) -> str | None:
    """Return the model that stands in for one of the paper's; None where none does.

    On stand-in data, a model that the scale does not list has no stand-in: rows of a table that
    differ in the model alone would otherwise show one and the same run under different names.
    """
    listed: str | None = scale["models"].get(name)
    return name if listed is None and scale["stand_in"] is None else listed


def testset(scale: Scale, name: str) -> str:
    """Return the test set that stands in for one of the paper's."""
    return str(scale["tests"].get(name, name))


def headline_tests(scale: Scale, names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return a task's headline test sets, those replaced whose stand-in the task has."""
    stand_ins = (testset(scale, name) for name in names)
    chosen = [new if new in known else old for old, new in zip(names, stand_ins, strict=True)]
    return list(dict.fromkeys(chosen))


def development_set(
    scale: Scale, task: Mapping[str, Any], decoding: Mapping[str, Any]
) -> str | None:
    """Return the set of a task that a decoding's length penalty is tuned on; None: it is stated.

    Where the task has no set of the name that the decoding gives, its stand-in.
    """
    if not isinstance(decoding["length_penalty"], Mapping):
        return None
    name: str = decoding["length_penalty"]["tuned_on"]
    return name if name in development_sets(task) else testset(scale, name)


def development_sets(task: Mapping[str, Any]) -> list[str]:
    """Return the sets of a task that a length penalty can be tuned on."""
    return ["valid", *task["corpus"]["tests"]]


def headline_model(scale: Scale, name: str) -> str:
    """Return the model that a task's headline rests on: the stand-in, where the scale names one."""
    return str(scale["models"].get(name, name))


def headline_seeds(scale: Scale, seeds: Sequence[int]) -> list[int]:
    """Return a headline's seeds, no more than the scale allows."""
    return list(seeds)[: scale["seeds"]]


def runs(scale: Scale, names: Sequence[str]) -> list[str]:
    """Return the runs of a cell with no more seeds than the scale allows.

    Of seed1, seed2, ... the first ones are kept; an ensemble is made of fewer models.
    """
    most = scale["seeds"]
    if most is None:
        return list(names)
    fewer = [_smaller(name, most) for name in names]
    return list(dict.fromkeys(fewer))[:most]


def _smaller(run: str, most: int) -> str:
    if not run.startswith("ensemble"):
        return run
    models = min(int(run.removeprefix("ensemble")), most)
    return f"ensemble{models}" if models > 1 else "seed1"
