"""Incremental decoding equals the full forward pass for the architectures of config/models.yaml."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from convs2s.config.architecture import Architecture, Blocks, LstmArchitecture
from convs2s.config.load import load
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.build import build_network, shapes_alone
from convs2s.models.convs2s import ConvS2S
from convs2s.models.network import Network
from tests.conftest import ROOT
from tests.support.networks import assert_incremental_equals_full

SETTINGS = load(ROOT)
TYPES, POSITIONS = 30, 20


def shape(architecture: Architecture) -> str:
    """Return what models have in common that differ in numbers of equal blocks alone."""
    depth = {"__all__": {"layers"}}
    return architecture.model_dump_json(exclude={"encoder": depth, "decoder": depth})


NAMES = list(
    {
        shape(model.architecture): name for name, model in SETTINGS.models.items()
    }.values()
)
"""A model of each shape: the last one, with the most blocks."""


def narrowed(stacks: tuple[Blocks, ...]) -> tuple[Blocks, ...]:
    """Divide the widths by 8: the number, kernels and changes of width of the blocks stay."""
    return tuple(
        stack.model_copy(update={"width": stack.width // 8}) for stack in stacks
    )


def network(name: str) -> Network:
    """Return a network of this architecture, narrow and with small tables, in float64."""
    architecture = SETTINGS.model(name).architecture
    changes: dict[str, object]
    if isinstance(architecture, LstmArchitecture):
        changes = {
            "cells": architecture.cells // 8,
            "embedding": architecture.embedding // 8,
        }
    else:
        changes = {
            "encoder": narrowed(architecture.encoder),
            "decoder": narrowed(architecture.decoder),
            "positions": architecture.positions.model_copy(
                update={"maximum": POSITIONS}
            ),
        }
    torch.manual_seed(0)
    narrow = architecture.model_copy(update=changes)
    return build_network(narrow, TYPES, TYPES).double().eval()


def sentences() -> tuple[Tensor, Tensor]:
    """Return a source of two lengths and a decoder input."""
    generator = torch.Generator().manual_seed(0)
    source, previous = torch.randint(END + 2, TYPES, (2, 2, 9), generator=generator)
    source[0, -1], source[1, 4], source[1, 5:] = END, END, PADDING
    previous[:, 0] = END
    return source, previous


@pytest.mark.parametrize("name", NAMES)
def test_incremental_equals_full(name: str) -> None:
    assert_incremental_equals_full(network(name), *sentences())


# ---- weights of attention that blocks share ----


def test_the_tutorials_network_has_its_number_of_parameters() -> None:
    """37,351,685 with the tutorial's vocabularies; weight normalization adds a length a row."""
    architecture = SETTINGS.model("tutorial_de_en").architecture
    with torch.device("meta"):
        tutorial = build_network(architecture, 7855, 5893)
    sizes = {name: one.numel() for name, one in tutorial.named_parameters()}
    lengths = sum(size for name, size in sizes.items() if name.endswith("weight_g"))
    assert sum(sizes.values()) - lengths == 37_351_685
    assert round(sum(sizes.values()) / 1e6, 1) == 37.4


def test_shared_weights_are_one_parameter_that_every_block_trains() -> None:
    shared = network("tutorial_de_en")
    assert isinstance(shared, ConvS2S)
    names = [
        name for name in shared.state_dict() if "attention.in_projection.bias" in name
    ]
    assert names == ["decoder.blocks.0.attention.in_projection.bias"]
    copied = deepcopy(shared)
    attentions = [block.attention for block in copied.decoder.blocks]
    first = attentions[0]
    assert first is not None
    assert all(one is first for one in attentions)
    assert all(block.attention is not first for block in shared.decoder.blocks)
    source, previous = sentences()
    # The last block's attention alone.
    copied(source, previous)[1][-1].square().sum().backward()
    gradient = first.in_projection.bias.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_counted_without_the_network(name: str) -> None:
    architecture = SETTINGS.model(name).architecture
    with shapes_alone():
        parameters = build_network(architecture, 101, 97).parameters()
    counted = sum(parameter.numel() for parameter in parameters)
    assert architecture.count_parameters(101, 97) == counted
