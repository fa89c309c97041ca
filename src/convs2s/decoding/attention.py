"""The attention of a finished translation, layer by layer, for looking at."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from convs2s.data.vocabulary import END, SPECIAL_TOKENS
from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines
from convs2s.model_file import load_model
from convs2s.models.network import Network


@dataclass(frozen=True)
class AttentionMap:
    """One sentence's attention.

    Attributes:
        weights: (layers, n, m), each row sums to 1.
        source: the m source tokens, ``</s>`` last.
        target: the n target tokens, ``</s>`` last.
    """

    weights: npt.NDArray[np.float32]
    source: list[str]
    target: list[str]

    def as_json(self) -> dict[str, object]:
        """Return what a page draws: both sides' tokens, and the weights to four digits."""
        weights = np.round(self.weights.astype(np.float64), 4).tolist()
        return {"source": self.source, "target": self.target, "weights": weights}


def attention_of(model: Path, translations: Path, line: int) -> AttentionMap:
    """Return the attention of one line of a decoded test set, by a pass over its output.

    Args:
        model: the model file that decoded it.
        translations: the decoder's JSON lines.
        line: its number from 1.

    Raises:
        UserError: the test set has no such line, or the model has no attention.
    """
    network, description = load_model(model)
    if not network.attends:
        raise UserError(f"{model}: has no attention to plot")
    source_vocabulary = description.source_vocabulary()
    target_vocabulary = description.target_vocabulary()
    rows = list(read_lines(translations))
    if line > len(rows):
        raise UserError(
            f"config.yaml: plots.sentences names line {line}, but {translations} has {len(rows)}"
        )
    with failures_of_file(f"{translations}:{line}", "no translation; decode the test set again"):
        row = json.loads(rows[line - 1])
        source, target = row["source_tokens"], row["tokens"]
        indices = source_vocabulary.encode(source), target_vocabulary.encode(target)
    weights = layer_attention(network, *indices)
    end = SPECIAL_TOKENS[END]
    return AttentionMap(weights.numpy(), [*source, end], [*target, end])


@torch.inference_mode()
def layer_attention(network: Network, source: Sequence[int], target: Sequence[int]) -> Tensor:
    """Return the attention (layers, n, m) by which a network writes a target, layer by layer.

    Their mean is what a search goes by: it keeps no more of that than where it is highest.

    Args:
        network: one that attends.
        source: m indices, ``</s>`` last.
        target: n indices, ``</s>`` last.
    """
    device = network.output.bias.device
    previous = [END, *target[:-1]]
    rows = (torch.tensor([row], device=device) for row in (source, previous))
    _, attentions = network(*rows)
    return torch.cat(attentions)
