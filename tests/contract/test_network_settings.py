"""The networks that the configuration and model files state, and the names of runs."""

import json
import re

from convs2s.config.architecture import parse_architecture
from convs2s.config.runs import RUN_PATTERN, members
from tests.support.networks import architecture_of


def test_attention_of_each_block() -> None:
    assert architecture_of(attention="all").attends == (1, 1, 1)
    assert architecture_of(attention=[1, 3]).attends == (1, 0, 1)


def test_a_model_file_of_old_states_neither_kind_nor_selection() -> None:
    left_out = {"kind", "vocabulary_selection"}
    old = json.loads(architecture_of().model_dump_json(exclude=left_out))
    assert parse_architecture(old) == architecture_of()


def test_names_of_runs() -> None:
    names = "seed0 seed1 seed10 seed999999999 ensemble2 ensemble99"
    assert all(re.fullmatch(RUN_PATTERN, name) for name in names.split())
    others = "seed seed01 seed-1 seed1000000000 ensemble0 ensemble1 ensemble02"
    assert not any(re.fullmatch(RUN_PATTERN, name) for name in others.split())
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]
    assert members("seed7") == ["seed7"]
