"""Compute what a network does with a text: its attention by layer, or an LSTM's final states."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convs2s.data.batches import pad
from convs2s.data.vocabulary import END, SPECIAL_TOKENS
from convs2s.decoding.words import Splitter
from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines
from convs2s.model_file import describe_model, load_model, load_weights
from convs2s.models.onnx_attention import AttentionReader
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Numbers

if TYPE_CHECKING:
    from convs2s.models.network import Network

ReadsAttention = Callable[[Sequence[int], Sequence[int]], Numbers]
"""A function that takes a source and a target (m and n indices, ``</s>`` last).

It returns the attention (layers, n, m). This takes a forward pass of its own, because for each
target token a search keeps only the source token with the highest mean attention.
"""


@dataclass(frozen=True)
class AttentionMap:
    """The attention for one sentence: from each target token to each source token."""

    weights: NDArray[np.float32]  # (layers, n, m); for each target token, they sum to 1
    source: list[str]  # m tokens, </s> last
    target: list[str]  # n tokens, </s> last

    def as_json(self) -> dict[str, Any]:
        """Return both sides' tokens and the weights, rounded to four decimals, for a web page."""
        weights = np.round(self.weights.astype(np.float64), 4).tolist()
        return {"source": self.source, "target": self.target, "weights": weights}


def attention_of(
    model: Path,
    translations: Path,
    line: int,
) -> AttentionMap:
    """Return the attention for one line of a decoded test set.

    The attention is computed in a forward pass over the line's source and output. ``translations``
    has the JSON lines that ``model`` decoded, and ``line`` counts from 1.

    Raises:
        UserError: the model has no attention, or the file has no such line or a malformed one.
    """
    read = attention_reader(model)
    if read is None:
        raise UserError(f"{model}: has no attention to plot")
    description = describe_model(model)
    source_vocabulary, target_vocabulary = description.vocabularies()
    rows = list(read_lines(translations))
    if not 1 <= line <= len(rows):
        raise UserError(
            f"{translations}: has {len(rows)} lines, so there is no sentence {line}; change "
            "plots.sentences in config.yaml, or the number at the end of the plot's name"
        )
    problem = "not a translation; decode the test set again"
    with failures_of_file(f"{translations}:{line}", problem):
        row = json.loads(rows[line - 1])
        source = row["source_tokens"]
        target = row["tokens"]
        source_indices = source_vocabulary.encode(source)
        target_indices = target_vocabulary.encode(target)
    return attention_map([read(source_indices, target_indices)], source, target)


def attention_reader(model: Path) -> ReadsAttention | None:
    """Load a model to compute its attention on a CPU; None if it has no attention.

    ONNX Runtime computes it in fp32 if it can run the network; torch is then not imported.

    Raises:
        UserError: the file is not a model file, or its weights are not those of its network.
    """
    if describe_model(model).architecture.runs_onnx:
        weights, description = load_weights(model)
        try:
            network = Weights(weights, description.architecture, description.sizes)
            return AttentionReader(network).read
        except ValueError:
            load_model(model)  # raises a UserError that says which weights are wrong
            raise
    loaded, _ = load_model(model)
    return partial(layer_attention, loaded) if loaded.attends else None


def attention_map(
    attention_by_network: Sequence[Numbers],
    source: Sequence[str],
    target: Sequence[str],
) -> AttentionMap:
    """Join the attention of several networks for one sentence.

    ``attention_by_network`` has one array of shape (layers, n, m) for each network. ``source``
    (m - 1) and ``target`` (n - 1) are tokens without ``</s>``, which is added.
    """
    end = SPECIAL_TOKENS[END]
    weights = np.concatenate(attention_by_network)
    return AttentionMap(weights, source=[*source, end], target=[*target, end])


def layer_attention(
    network: "Network",
    source: Sequence[int],
    target: Sequence[int],
) -> Numbers:
    """Return the attention of each layer of a torch network; see `ReadsAttention`."""
    import torch

    device = network.output.bias.device
    previous = [END, *target[:-1]]  # the decoder's input
    with torch.inference_mode():
        _, attentions = network(
            torch.tensor([source], device=device),  # (1, m)
            torch.tensor([previous], device=device),  # (1, n)
        )
        # The attention of each layer is (1, n, m).
        return torch.cat(attentions).cpu().numpy()  # (layers, n, m)


@dataclass(frozen=True)
class FinalStates:
    """The final states of an LSTM's encoder, which are all that its decoder gets of a sentence."""

    tokens: list[list[str]]  # for each line, the tokens that the model reads
    unknown: list[list[str]]  # for each line, the tokens that are not in the vocabulary
    # (lines, numbers): for each line, the outputs and cells of all layers, the bottom layer first.
    states: NDArray[np.floating[Any]]


def final_states(model: Path, lines: Sequence[str]) -> FinalStates:
    """Return the final states of a model's encoder for lines of raw text.

    Each line must have at least one word.

    Raises:
        UserError: the model is not an LSTM and has no such states.
    """
    import torch

    network, description = load_model(model)
    split = Splitter(description, description.languages["source"], "raw")
    vocabulary, _ = description.vocabularies()
    tokens = list(map(split, lines))
    unknown = []
    for row in tokens:
        unknown.append([token for token in row if token not in vocabulary])
    rows = pad(list(map(vocabulary.encode, tokens)))
    with torch.inference_mode():
        states = network.final_state(torch.from_numpy(rows))
    if states is None:
        raise UserError(
            f"{model}: its encoder has no final state of a fixed size; name a model of kind lstm"
        )
    return FinalStates(tokens, unknown, states.numpy())
