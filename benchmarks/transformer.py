"""Transformers of random weights in the size of one of this project's networks, for comparison."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

HEAD = 64
"""Width of an attention head."""

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


class Shape(NamedTuple):
    """A Transformer: so many layers on each side, four times as wide inside."""

    width: int
    layers: int
    types: int

    @property
    def parameters(self) -> int:
        """Weights: both tables, the output layer, and 12 and 16 squares of each layer."""
        return 3 * self.types * self.width + self.layers * 28 * self.width**2

    @property
    def heads(self) -> int:
        """Of each attention."""
        return max(1, self.width // HEAD)


def shape_of(parameters: int, width: int, types: int) -> Shape:
    """Return the Transformer that comes closest to so many parameters."""
    layers = (parameters - 3 * types * width) / (28 * width**2)
    return Shape(width, max(1, round(layers)), types)


def write_ctranslate2(library: ModuleType, folder: Path, shape: Shape) -> None:
    """Write a CTranslate2 model of random weights, whose tokens are ``w0``, ``w1`` and so on."""
    spec = library.specs.TransformerSpec.from_config((shape.layers, shape.layers), shape.heads)
    generator = np.random.default_rng(1)
    width, inner = shape.width, 4 * shape.width

    def linear(one: Any, outputs: int, inputs: int) -> None:
        one.weight = generator.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        one.bias = np.zeros(outputs, np.float32)

    for norm in _norms(spec):
        norm.gamma, norm.beta = np.ones(width, np.float32), np.zeros(width, np.float32)
    for side in (spec.encoder, spec.decoder):
        for layer in side.layer:
            linear(layer.self_attention.linear[0], 3 * width, width)
            linear(layer.self_attention.linear[1], width, width)
            linear(layer.ffn.linear_0, inner, width)
            linear(layer.ffn.linear_1, width, inner)
    for layer in spec.decoder.layer:
        for one, outputs in zip(layer.attention.linear, (width, 2 * width, width), strict=True):
            linear(one, outputs, width)
    for table in (*spec.encoder.embeddings, spec.decoder.embeddings):
        table.weight = generator.normal(0, 0.1, (shape.types, width)).astype(np.float32)
    linear(spec.decoder.projection, shape.types, width)
    tokens = SPECIAL + [f"w{number}" for number in range(shape.types - len(SPECIAL))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))


def _norms(spec: Any) -> Iterator[Any]:
    for side in (spec.encoder, spec.decoder):
        yield side.layer_norm
        for layer in side.layer:
            yield layer.self_attention.layer_norm
            yield layer.ffn.layer_norm
    for layer in spec.decoder.layer:
        yield layer.attention.layer_norm


class TorchTransformer(nn.Module):
    """``torch.nn.Transformer`` with its tables, trained by Nesterov's momentum as ours is."""

    def __init__(self, shape: Shape, precision: torch.dtype) -> None:
        """Draw the weights; bf16 is by autocast."""
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(shape.types, shape.width) for _ in range(2))
        self.layers = nn.Transformer(
            *(shape.width, shape.heads, shape.layers, shape.layers, 4 * shape.width),
            batch_first=True,
        )
        self.output = nn.Linear(shape.width, shape.types)
        self.rounds = torch.autocast("cpu", torch.bfloat16, precision == torch.bfloat16)
        self.optimizer = torch.optim.SGD(
            self.parameters(), 0.01, momentum=0.99, nesterov=True, fused=True
        )

    def update(self, source: Tensor, target: Tensor) -> None:
        """Make an update of pairs (B, m) and (B, n)."""
        self.optimizer.zero_grad()
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        with self.rounds:
            read, written = (
                table(side) for table, side in zip(self.tables, (source, target), strict=True)
            )
            states = self.layers(read, written, tgt_mask=mask, tgt_is_causal=True)
            logits = self.output(states).flatten(0, 1)
        functional.cross_entropy(logits.float(), target.flatten()).backward()
        nn.utils.clip_grad_norm_(self.parameters(), 0.1)
        self.optimizer.step()
