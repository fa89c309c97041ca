"""What a network makes of a text: its attention layer by layer, or an LSTM's final states."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from convs2s.data.batches import pad
from convs2s.data.vocabulary import END, SPECIAL_TOKENS
from convs2s.decoding.words import Splitter
from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines
from convs2s.model_file import load_model
from convs2s.models.network import Network


@dataclass(frozen=True)
class AttentionMap:
    """One sentence's attention."""

    weights: NDArray[np.float32]  # (layers, n, m), each row sums to 1
    source: list[str]  # m tokens, </s> last
    target: list[str]  # n tokens, </s> last

    def as_json(self) -> dict[str, Any]:
        """Return what a page draws: both sides' tokens, and the weights to four digits."""
        weights = np.round(self.weights.astype(np.float64), 4).tolist()
        return {"source": self.source, "target": self.target, "weights": weights}


def attention_of(
    model: Path,
    translations: Path,
    line: int,
) -> AttentionMap:
    """Return the attention of a line (from 1) of a decoded test set, by a pass over its output.

    ``translations`` are the JSON lines of the model that decoded it. A line that is not in them,
    and a model without attention, are refused with a UserError.
    """
    network, description = load_model(model)
    if not network.attends:
        raise UserError(f"{model}: has no attention to plot")
    source_vocabulary, target_vocabulary = description.vocabularies()
    rows = list(read_lines(translations))
    if not 1 <= line <= len(rows):
        raise UserError(
            f"sentence {line} is asked for (plots.sentences of config.yaml, or a target's name), "
            f"but {translations} has {len(rows)}"
        )
    with failures_of_file(f"{translations}:{line}", "no translation; decode the test set again"):
        row = json.loads(rows[line - 1])
        source = row["source_tokens"]
        target = row["tokens"]
        source_indices = source_vocabulary.encode(source)
        target_indices = target_vocabulary.encode(target)
    layers = layer_attention(network, source_indices, target_indices)
    return attention_map([layers], source, target)


def attention_map(
    layers: Sequence[Tensor],
    source: Sequence[str],
    target: Sequence[str],
) -> AttentionMap:
    """Join the attention (layers, n, m) of networks; ``source`` and ``target`` lack ``</s>``."""
    end = SPECIAL_TOKENS[END]
    weights = torch.cat(list(layers)).cpu().numpy()
    return AttentionMap(weights, source=[*source, end], target=[*target, end])


@torch.inference_mode()
def layer_attention(
    network: Network,
    source: Sequence[int],
    target: Sequence[int],
) -> Tensor:
    """Return the attention (layers, n, m) by which a network writes a target, layer by layer.

    ``source`` and ``target`` are m and n indices, ``</s>`` last. A search does not keep this: it
    takes the layers' mean, and keeps where that is highest.
    """
    device = network.output.bias.device
    previous = [END, *target[:-1]]
    _, attentions = network(
        torch.tensor([source], device=device),  # (1, m)
        torch.tensor([previous], device=device),  # (1, n)
    )
    return torch.cat(attentions)


@dataclass(frozen=True)
class FinalStates:
    """The states in which an LSTM's encoder ends: all that its decoder knows of a sentence."""

    tokens: list[list[str]]  # what the model reads of each line
    unknown: list[list[str]]  # those of each that it does not know
    states: NDArray[np.floating[Any]]  # (lines, numbers): outputs and cells, bottom layer first


@torch.inference_mode()
def final_states(model: Path, lines: Sequence[str]) -> FinalStates:
    """Read lines of raw text, none without a word; a model without such states is a UserError."""
    network, description = load_model(model)
    split = Splitter(description, description.languages["source"], "raw")
    vocabulary, _ = description.vocabularies()
    tokens = []
    unknown = []
    for line in lines:
        row = split(line)
        tokens.append(row)
        unknown.append([token for token in row if token not in vocabulary])
    rows = [vocabulary.encode(row) for row in tokens]
    states = network.final_state(torch.from_numpy(pad(rows)))
    if states is None:
        raise UserError(
            f"{model}: has no state of one size after a sentence; name a model of kind: lstm"
        )
    return FinalStates(tokens, unknown, states.numpy())
