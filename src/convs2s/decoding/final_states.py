"""The state in which an LSTM's encoder ends: all that its decoder knows of a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from convs2s.data.batches import pad
from convs2s.decoding.splitter import Splitter
from convs2s.errors import UserError
from convs2s.model_file import load_model
from convs2s.models.lstm import Lstm


@dataclass(frozen=True)
class FinalStates:
    """The states after some lines.

    Attributes:
        tokens: what the model reads of each line.
        unknown: those of each that it does not know.
        states: (lines, numbers): outputs and cells of each layer, bottom first.
    """

    tokens: list[list[str]]
    unknown: list[list[str]]
    states: NDArray[np.floating[Any]]


@torch.inference_mode()
def final_states(model: Path, lines: Sequence[str]) -> FinalStates:
    """Read lines of raw text with a model's encoder.

    Args:
        model: the model file.
        lines: of the source language, none without a word.

    Raises:
        UserError: the file is no model, or its encoder ends in no state of one size.
    """
    network, description = load_model(model)
    if not isinstance(network, Lstm):
        raise UserError(
            f"{model}: has no state of one size after a sentence; name a model of kind: lstm"
        )
    split = Splitter(description, description.languages["source"], "raw")
    tokens = [split(line) for line in lines]
    vocabulary = description.source_vocabulary()
    rows = [vocabulary.encode(row) for row in tokens]
    layers = network.encode(torch.from_numpy(pad(rows)))
    parts = [part[0] for layer in layers for part in layer]  # each (lines, cells)
    unknown = [[token for token in row if token not in vocabulary] for row in tokens]
    return FinalStates(tokens, unknown, torch.cat(parts, dim=1).numpy())
