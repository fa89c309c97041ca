"""Small networks with random weights, sentences for them to read, and how to search."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from convs2s.config.architecture import (
    ConvS2SArchitecture,
    LstmArchitecture,
    RnnArchitecture,
)
from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network
from convs2s.models.rnn import Rnn

TYPES = 20

Layers = tuple[tuple[int, int], ...]
Made = TypeVar("Made", bound=Network)


def convs2s(encoder: Layers, decoder: Layers, **others: Any) -> ConvS2SArchitecture:
    """Describe a network by the width and kernel of each of its layers."""
    stacks = {
        side: [
            {"layers": 1, "width": width, "kernel": kernel} for width, kernel in layers
        ]
        for side, layers in (("encoder", encoder), ("decoder", decoder))
    }
    return ConvS2SArchitecture.model_validate(stacks | others)


def architecture_of(
    kernels: tuple[int, ...] = (3, 1, 2),
    attention: tuple[bool, ...] = (True,) * 3,
    **settings: object,
) -> ConvS2SArchitecture:
    return convs2s(
        ((12, 3), (8, 5), (8, 1)),
        tuple(zip((12, 12, 8), kernels, strict=True)),
        embedding=10,
        output_embedding=6,
        attention=[number for number, attends in enumerate(attention, 1) if attends],
        **{"positions": {"maximum": 30}, **settings},
    )


def _sharp(
    kind: Callable[[Any, int, int], Made], architecture: object, seed: int, factor: int
) -> Made:
    """Make a network with larger random weights than an untrained one has."""
    torch.manual_seed(seed)
    model = kind(architecture, TYPES, TYPES).double()
    for parameter in model.parameters():
        parameter.data.mul_(factor)
    return model


def network(seed: int = 0, **settings: Any) -> ConvS2S:
    return _sharp(ConvS2S, architecture_of(**settings), seed, 2)


def lstm(layers: int = 2, reverse_source: bool = True) -> Lstm:
    stated = {"layers": layers, "cells": 12, "embedding": 10}
    architecture = LstmArchitecture.model_validate(
        {"kind": "lstm", "dropout": 0.1, "reverse_source": reverse_source} | stated
    )
    return _sharp(Lstm, architecture, 0, 10)


def rnn(cell: str = "gru", attention: str = "bahdanau", layers: int = 1) -> Rnn:
    stated = {"layers": layers, "cells": 12, "embedding": 16}
    architecture = RnnArchitecture.model_validate(
        {"kind": "rnn", "dropout": 0.1, "cell": cell, "attention": attention} | stated
    )
    return _sharp(Rnn, architecture, 0, 2)


def batch(*lengths: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.full((len(lengths), max(lengths) + 1), PADDING)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(3, TYPES, (length,), generator=generator)
        row[length] = END
    return rows


def options(**changes: Any) -> DecodingSettings:
    """Return how to search, a maximum of five tokens more than the source unless told."""
    return DecodingSettings.model_validate(
        {"maximum_length": {"factor": 1, "offset": 5}} | changes
    )
