"""Names of runs: each run has one, and no name asks for what cannot be."""

import re

import pytest

from convs2s.config.runs import RUN_PATTERN, members


@pytest.mark.parametrize(
    "name", ["seed0", "seed1", "seed10", "ensemble2", "ensemble99"]
)
def test_runs_have_names(name: str) -> None:
    assert re.fullmatch(RUN_PATTERN, name)


@pytest.mark.parametrize(
    "name",
    [
        "seed",
        "seed01",
        "seed00",
        "seed-1",
        "seed1000000000",
        "ensemble0",
        "ensemble1",
        "ensemble02",
        "ensemble100",
    ],
)
def test_other_names_are_none(name: str) -> None:
    assert not re.fullmatch(RUN_PATTERN, name)


def test_an_ensemble_is_its_first_seeds() -> None:
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]
    assert members("seed7") == ["seed7"]
    assert members("released") == ["released"]
