"""Incremental decoding equals the full forward pass for every model of config/models.yaml."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from convs2s.config import load, model_settings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.architecture import Architecture, Layer
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm, LstmArchitecture
from convs2s.models.network import Network
from tests.conftest import ROOT
from tests.unit.networks import assert_incremental_equals_full

SETTINGS = load(ROOT)
TYPES, POSITIONS = 30, 20


def narrowed(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Divide the widths by 8: the number, kernels and changes of width of the blocks stay."""
    return tuple(replace(layer, width=layer.width // 8) for layer in layers)


def network(name: str) -> Network:
    """Return a network of this architecture, narrow and with small tables, in float64."""
    settings = model_settings(SETTINGS, name)["architecture"]
    torch.manual_seed(0)
    if settings["kind"] == "lstm":
        lstm = LstmArchitecture.from_settings(settings)
        lstm = replace(lstm, cells=lstm.cells // 8, embedding=lstm.embedding // 8)
        return Lstm(lstm, TYPES, TYPES, PADDING).double().eval()
    described = Architecture.from_settings(settings)
    source, target = described.source_positions, described.target_positions
    architecture = replace(
        described,
        encoder=narrowed(described.encoder),
        decoder=narrowed(described.decoder),
        source_positions=source and POSITIONS,
        target_positions=target and POSITIONS,
    )
    return ConvS2S(architecture, TYPES, TYPES, PADDING).double().eval()


def sentences() -> tuple[Tensor, Tensor]:
    """Return a source of two lengths and a decoder input."""
    generator = torch.Generator().manual_seed(0)
    source, previous = torch.randint(END + 2, TYPES, (2, 2, 9), generator=generator)
    source[0, -1], source[1, 4], source[1, 5:] = END, END, PADDING
    previous[:, 0] = END
    return source, previous


@pytest.mark.parametrize("name", SETTINGS.models)
def test_incremental_equals_full(name: str) -> None:
    assert_incremental_equals_full(network(name), *sentences())
