"""Small networks with random weights, sentences for them to read, and how to search."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from convs2s.config.architecture import (
    ConvS2SArchitecture,
    LstmArchitecture,
    RnnArchitecture,
)
from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.ensemble import Ensemble, for_inference
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network
from convs2s.models.rnn import Rnn

TYPES = 20

Made = TypeVar("Made", bound=Network)


def assert_incremental_equals_full(
    model: Network, source: Tensor, previous: Tensor
) -> None:
    """Compare each step's logits, log-probabilities and mean attention, within 1e-9."""
    model.eval()
    with torch.no_grad():
        logits, attentions = model(source, previous)
        state = Ensemble([model]).start(source, 1)
        inference = for_inference(model, "fp32")
        decoding = inference.start(source, 1)
        for position in range(previous.shape[1]):
            tokens = previous[:, position : position + 1]
            features, _ = decoding.step(tokens)
            now = inference.output(features)
            torch.testing.assert_close(
                now[:, 0], logits[:, position], atol=1e-9, rtol=0
            )
            predictions, attention = state.step(tokens)
            expected = logits[:, position].log_softmax(1)
            torch.testing.assert_close(predictions[:, 0], expected, atol=1e-9, rtol=0)
            assert (attention is not None) == bool(attentions) == model.attends
            if attention is not None:
                mean = torch.stack(attentions).mean(0)[:, position]
                torch.testing.assert_close(attention[:, 0], mean, atol=1e-9, rtol=0)


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
    kind: Callable[[Any, int, int], Made],
    architecture: object,
    seed: int,
    factor: float,
) -> Made:
    """Make a network with larger random weights than an untrained one has."""
    torch.manual_seed(seed)
    model = kind(architecture, TYPES, TYPES).double()
    for parameter in model.parameters():
        parameter.data.mul_(factor)
    return model


def network(seed: int = 0, **settings: Any) -> ConvS2S:
    return _sharp(ConvS2S, architecture_of(**settings), seed, 2.0)


def batch(*lengths: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.full((len(lengths), max(lengths) + 1), PADDING)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(3, TYPES, (length,), generator=generator)
        row[length] = END
    return rows


def convs2s(
    encoder: Sequence[tuple[int, int]],
    decoder: Sequence[tuple[int, int]],
    **others: Any,
) -> ConvS2SArchitecture:
    """Describe a network by the width and kernel of each of its layers."""
    stacks = {
        side: [
            {"layers": 1, "width": width, "kernel": kernel} for width, kernel in layers
        ]
        for side, layers in (("encoder", encoder), ("decoder", decoder))
    }
    return ConvS2SArchitecture.model_validate(stacks | others)


def options(**changes: Any) -> DecodingSettings:
    """Return how to search, a maximum of five tokens more than the source unless told."""
    return DecodingSettings.model_validate(
        {"maximum_length": {"factor": 1, "offset": 5}} | changes
    )


def lstm(seed: int = 0, layers: int = 2, reverse_source: bool = True) -> Lstm:
    architecture = LstmArchitecture(
        kind="lstm",
        layers=layers,
        cells=12,
        embedding=10,
        dropout=0.1,
        reverse_source=reverse_source,
    )
    return _sharp(Lstm, architecture, seed, 10.0)


def rnn(cell: str = "gru", attention: str = "bahdanau", layers: int = 1) -> Rnn:
    architecture = RnnArchitecture.model_validate(
        {
            "kind": "rnn",
            "cell": cell,
            "attention": attention,
            "layers": layers,
            "cells": 12,
            "embedding": 16,
            "dropout": 0.1,
        }
    )
    return _sharp(Rnn, architecture, 0, 2.0)
