"""The attention of a model that translates one sentence, as it is kept and shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from convs2s.errors import failures_of_file


@dataclass(frozen=True)
class LayerCount:
    """How many decoder layers attend.

    Attributes:
        score: their number.
        signature: of what sentence, by which model.
    """

    score: int
    signature: str


@dataclass(frozen=True)
class ExampleAttention:
    """The attention of a model that translates one sentence.

    Attributes:
        task, model, run: whose model it is.
        scale: of the run.
        stand_in: what its data is, where it is not the paper's.
        source: the sentence.
        source_tokens: what the model reads of it, ``</s>`` last.
        translation: of the sentence.
        target_tokens: what the model writes, ``</s>`` last.
        layers: those of the decoder that attend.
        weights: (layers, target, source), each row over the source summing to 1.
    """

    task: str
    model: str
    run: str
    scale: str
    stand_in: str | None
    source: str
    source_tokens: Sequence[str]
    translation: str
    target_tokens: Sequence[str]
    layers: LayerCount
    weights: Sequence[Sequence[Sequence[float]]]

    def strongest(self) -> list[tuple[str, list[str]]]:
        """Return each target token with the source token that each layer looks at most."""
        places = np.array(self.weights).argmax(axis=2).T  # (target, layers)
        return [
            (token, [self.source_tokens[place] for place in row])
            for token, row in zip(self.target_tokens, places, strict=True)
        ]


def read_example(path: Path) -> ExampleAttention:
    """Read an example; its manifest is for people.

    Raises:
        UserError: the file is no example.
    """
    with failures_of_file(str(path), "no example's attention; delete it and ask for it again"):
        return TypeAdapter(ExampleAttention).validate_json(path.read_bytes())
