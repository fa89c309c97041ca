"""The networks that the configuration and model files state."""

import json

import pytest

from convs2s.config.architecture import (
    Blocks,
    ConvS2SArchitecture,
    Layer,
    LstmArchitecture,
    Positions,
    VocabularySelection,
    parse_architecture,
)
from convs2s.errors import UserError

STACKS = (Blocks(layers=2, width=8, kernel=3), Blocks(layers=1, width=16, kernel=1))


def network(**changes: object) -> ConvS2SArchitecture:
    return ConvS2SArchitecture.model_validate(
        {"encoder": STACKS, "decoder": STACKS, **changes}
    )


def test_stacks_are_blocks_one_by_one() -> None:
    layers = (Layer(8, 3), Layer(8, 3), Layer(16, 1))
    assert network().encoder_layers == network().decoder_layers == layers


@pytest.mark.parametrize(
    ("attention", "attends"),
    [
        ("all", (True, True, True)),
        ([1, 3], (True, False, True)),
        ([2], (False, True, False)),
    ],
)
def test_attention_of_each_block(attention: object, attends: tuple[bool, ...]) -> None:
    assert network(attention=attention).attends == attends


def test_positions_are_rows_of_tables() -> None:
    one = network(positions=Positions(target=False, maximum=16))
    assert (one.positions.rows("source"), one.positions.rows("target")) == (16, None)


def test_a_vocabulary_is_selected_where_it_is_said() -> None:
    assert network().selection is None
    selection = VocabularySelection()
    assert network(vocabulary_selection=selection).selection == selection
    assert LstmArchitecture(kind="lstm").selection is None


@pytest.mark.parametrize(
    "stated",
    [network(attention=[1]), network(), LstmArchitecture(kind="lstm", cells=3)],
)
def test_a_model_file_states_the_whole_network(
    stated: ConvS2SArchitecture | LstmArchitecture,
) -> None:
    assert parse_architecture(json.loads(stated.model_dump_json())) == stated


def test_a_model_file_of_old_states_neither_kind_nor_selection() -> None:
    stated = json.loads(
        network().model_dump_json(exclude={"kind", "vocabulary_selection"})
    )
    assert parse_architecture(stated) == network()


def test_a_model_file_is_checked_as_the_configuration_is() -> None:
    stated = json.loads(network().model_dump_json()) | {"attention": [9]}
    with pytest.raises(UserError, match=r"^a\.safetensors: architecture\.?.*attention"):
        parse_architecture(stated, "a.safetensors")


def test_a_fault_of_a_model_file_is_one_line() -> None:
    with pytest.raises(UserError) as caught:
        parse_architecture({"kind": "lstm", "cell": 3}, "a.safetensors")
    assert str(caught.value) == (
        "a.safetensors: architecture: unknown key 'cell'; did you mean 'cells'?"
    )
