"""Small networks with random weights, sentences for them to read, and how to search."""

from typing import Any

import torch

from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.search import SearchOptions
from convs2s.models.architecture import Architecture, Layer
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm, LstmArchitecture

TYPES = 20


def network(
    seed: int = 0, kernels: tuple[int, ...] = (3, 1, 2), attention: tuple[bool, ...] = (True,) * 3
) -> ConvS2S:
    encoder = (Layer(12, 3), Layer(8, 5), Layer(8, 1))
    decoder = tuple(Layer(width, k) for width, k in zip((12, 12, 8), kernels, strict=True))
    architecture = Architecture(10, 6, encoder, decoder, attention, 30, 30, 0.1, "paper")
    torch.manual_seed(seed)
    model = ConvS2S(architecture, TYPES, TYPES, PADDING).double()
    for parameter in model.parameters():  # sharper than an untrained network
        parameter.data.mul_(2.0)
    return model


def batch(*lengths: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.full((len(lengths), max(lengths) + 1), PADDING)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(3, TYPES, (length,), generator=generator)
        row[length] = END
    return rows


def options(**changes: Any) -> SearchOptions:
    return SearchOptions(
        **{
            "beam": 5,
            "length_penalty": 1.0,
            "minimum_length": 0,
            "maximum_factor": 1.0,
            "maximum_offset": 5,
            "unknown_penalty": 0.0,
            "finished": "replace",
            **changes,
        }
    )


def lstm(seed: int = 0, layers: int = 2, reverse_source: bool = True) -> Lstm:
    architecture = LstmArchitecture(layers, 12, 10, 0.1, 0.08, reverse_source)
    torch.manual_seed(seed)
    model = Lstm(architecture, TYPES, TYPES, PADDING).double()
    for parameter in model.parameters():  # sharper than an untrained network
        parameter.data.mul_(10.0)
    return model
