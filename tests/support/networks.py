"""Small networks with random weights, sentences for them to read, and how to search."""

from typing import Any

import pytest
import torch

from convs2s.config.architecture import ConvS2SArchitecture, parse_architecture
from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import Hypothesis
from convs2s.models.build import build_network
from convs2s.models.convs2s import ConvS2S

TYPES = 20


def _layers(widths: tuple[int, ...], kernels: tuple[int, ...]) -> list[dict[str, int]]:
    sizes = zip(widths, kernels, strict=False)  # fewer kernels: fewer layers
    return [{"layers": 1, "width": width, "kernel": kernel} for width, kernel in sizes]


def architecture_of(
    kernels: tuple[int, ...] = (3, 1, 2), **settings: Any
) -> ConvS2SArchitecture:
    """Describe a network by the kernel of each layer of its decoder, and what else changes."""
    stated = {
        "encoder": _layers((12, 8, 8), (3, 5, 1)),
        "decoder": _layers((12, 12, 8), kernels),
        "embedding": 10,
        "output_embedding": 6,
        "positions": {"maximum": 30},
    }
    return ConvS2SArchitecture.model_validate(stated | settings)


def _sharp(architecture: Any, seed: int, factor: int) -> Any:
    """Make a network with larger random weights than an untrained one has."""
    torch.manual_seed(seed)
    model = build_network(architecture, TYPES, TYPES).double()
    for parameter in model.parameters():
        parameter.data.mul_(factor)
    return model


def network(seed: int = 0, **settings: Any) -> ConvS2S:
    made: ConvS2S = _sharp(architecture_of(**settings), seed, 2)
    return made


def lstm(layers: int = 2, **settings: Any) -> Any:
    stated = {"kind": "lstm", "layers": layers, "cells": 12, "embedding": 10}
    return _sharp(parse_architecture(stated | {"dropout": 0.1} | settings), 0, 10)


def rnn(cell: str = "gru", attention: str = "bahdanau", layers: int = 1) -> Any:
    stated = {"kind": "rnn", "layers": layers, "cells": 12, "embedding": 16}
    chosen = {"cell": cell, "attention": attention, "dropout": 0.1}
    return _sharp(parse_architecture(stated | chosen), 0, 2)


def batch(*lengths: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.full((len(lengths), max(lengths) + 1), PADDING)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(3, TYPES, (length,), generator=generator)
        row[length] = END
    return rows


def options(**changes: Any) -> DecodingSettings:
    """Return how to search, a maximum of five tokens more than the source unless told."""
    stated = {"maximum_length": {"factor": 1, "offset": 5}}
    return DecodingSettings.model_validate(stated | changes)


def assert_alike(
    found: list[list[Hypothesis]],
    expected: list[list[Hypothesis]],
    tolerance: float = 1e-9,
) -> None:
    """Compare each sentence's hypotheses, in order; scores within a share of their value."""
    for ours, theirs in zip(found, expected, strict=True):
        for mine, one in zip(ours, theirs, strict=True):
            assert (mine.tokens, mine.alignment) == (one.tokens, one.alignment)
            assert mine.score == pytest.approx(one.score, tolerance)
