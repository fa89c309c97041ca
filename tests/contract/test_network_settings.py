"""The networks that the configuration and model files state, and the names of runs."""

import json
import re

import pytest

from convs2s.config.architecture import (
    Blocks,
    ConvS2SArchitecture,
    Layer,
    LstmArchitecture,
    parse_architecture,
)
from convs2s.config.runs import RUN_PATTERN, members

STACKS = (Blocks(layers=2, width=8, kernel=3), Blocks(layers=1, width=16, kernel=1))


def network(**changes: object) -> ConvS2SArchitecture:
    stated = {"encoder": STACKS, "decoder": STACKS, **changes}
    return ConvS2SArchitecture.model_validate(stated)


def test_stacks_are_blocks_one_by_one_and_positions_are_rows() -> None:
    own = network(positions={"target": False, "maximum": 16})
    layers = (Layer(8, 3), Layer(8, 3), Layer(16, 1))
    assert own.encoder_layers == own.decoder_layers == layers
    assert own.positions.rows("source") == 16
    assert own.positions.rows("target") is None


@pytest.mark.parametrize(
    ("attention", "attends"), [("all", (1, 1, 1)), ([1, 3], (1, 0, 1))]
)
def test_attention_of_each_block(attention: object, attends: tuple[int, ...]) -> None:
    assert network(attention=attention).attends == attends


def test_a_model_file_states_the_whole_network() -> None:
    for stated in (network(attention=[1]), LstmArchitecture(kind="lstm", cells=3)):
        assert parse_architecture(json.loads(stated.model_dump_json())) == stated
    left_out = {"kind", "vocabulary_selection"}
    old = json.loads(network().model_dump_json(exclude=left_out))
    assert parse_architecture(old) == network()


def test_names_of_runs() -> None:
    names = "seed0 seed1 seed10 seed999999999 ensemble2 ensemble99"
    assert all(re.fullmatch(RUN_PATTERN, name) for name in names.split())
    others = "seed seed01 seed-1 seed1000000000 ensemble0 ensemble1 ensemble02"
    assert not any(re.fullmatch(RUN_PATTERN, name) for name in others.split())
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]
    assert members("seed7") == ["seed7"]
