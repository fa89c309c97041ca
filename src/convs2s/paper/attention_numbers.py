"""The numbers of an attention map, kept beside its picture."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convs2s.files import atomic_text, read_json

_DIGITS = 4


@dataclass(frozen=True)
class AttentionNumbers:
    """One sentence's attention.

    Attributes:
        weights: (layers, target, source), each row over the source summing to 1.
        source: the source's words or tokens.
        target: the target's.
    """

    weights: NDArray[np.floating]
    source: list[str]
    target: list[str]


def write_attention(
    weights: NDArray[np.floating], source: Sequence[str], target: Sequence[str], path: Path
) -> None:
    """Write a sentence's attention as JSON, its weights rounded.

    Args:
        weights: (layers, target, source).
        source: the source's words or tokens.
        target: the target's.
        path: the file to write.
    """
    rounded = [[[round(float(one), _DIGITS) for one in row] for row in layer] for layer in weights]
    with atomic_text(path) as stream:
        words = {"source": list(source), "target": list(target)}
        json.dump({**words, "weights": rounded}, stream, ensure_ascii=False)
        stream.write("\n")


def read_attention(path: Path) -> AttentionNumbers:
    """Read what :func:`write_attention` wrote.

    Raises:
        UserError: the file is missing, or is not JSON.
    """
    found = read_json(path)
    assert isinstance(found, dict)
    return AttentionNumbers(np.array(found["weights"]), found["source"], found["target"])
