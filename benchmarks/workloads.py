"""What the training benchmarks learn from: the peer implementation's input, or its lengths."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from convs2s.config import load, model_settings
from convs2s.config_schema import schema, with_defaults
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END, Vocabulary
from convs2s.files import read_lines

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ("multi30k", "wmt_en_fr", "wmt_en_de")
"""The peer's training on Multi30k, and updates of its largest networks."""

PEER = {
    "architecture": {
        "embedding": 256,
        "output_embedding": 256,
        "encoder": [{"layers": 4, "width": 256, "kernel": 3}],
        "decoder": [{"layers": 3, "width": 256, "kernel": 3}],
        "dropout": 0.2,
        "gradient_scaling": "py",
    },
    "training": {"batch": {"sentences": None, "words": 4000}},
}
"""The peer's network and batches on Multi30k (golden/README.md)."""

PEER_TYPES = (4385, 5766)
PEER_PAIRS = 28_355
WMT_TYPES, TINY_TYPES = 40_000, 400
WMT_PAIRS, WMT_LENGTH = 80, 25
WMT_BATCHES = 12


@dataclass(frozen=True)
class Workload:
    """What is trained on what.

    Attributes:
        settings: validated ``architecture`` and ``training`` of config/models.yaml.
        types: of each side, special tokens among them.
        store: the pairs.
        text: where they come from, in words.
    """

    settings: dict[str, Any]
    types: tuple[int, int]
    store: TokenStore
    text: str


def workload(shape: str, precision: str, folder: Path, pairs: int = WMT_PAIRS) -> Workload:
    """Make one of ``SHAPES``, or a tiny one; its store is written into ``folder``.

    Args:
        shape: its name.
        precision: of the training.
        folder: where to write.
        pairs: sentence pairs of a synthetic batch.
    """
    path = folder / f"{shape}.arrow"
    if shape == "multi30k":
        given = {"description": "the peer's"} | PEER
        filled = with_defaults(given, schema("model"))
        types, text = write_peer(path, peer_folder() / "bpe")
    else:
        filled = model_settings(load(ROOT), "demo" if shape == "tiny" else f"fconv_{shape}")
        count = TINY_TYPES if shape == "tiny" else WMT_TYPES
        types, text = (count, count), "synthetic"
        write_store(path, synthetic([WMT_LENGTH] * pairs * WMT_BATCHES, types))
        batch = {"sentences": pairs, "words": None, "micro_batch_tokens": None}
        filled["training"]["batch"] |= batch
    filled["training"]["precision"] = precision
    return Workload(filled, types, TokenStore(path), text)


def peer_folder() -> Path:
    """Return where the peer's input and its results are, if they are there."""
    shared = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    return shared / "golden" / "fairseq_multi30k"


def write_peer(path: Path, folder: Path) -> tuple[tuple[int, int], str]:
    """Write the peer's input, or pairs of about its lengths; return the types and its origin."""
    if not folder.is_dir():
        lengths = np.random.default_rng(0).poisson(12.5, PEER_PAIRS) + 3
        write_store(path, synthetic(lengths.tolist(), PEER_TYPES))
        return PEER_TYPES, "synthetic lengths"
    sides = [[line.split() for line in read_lines(folder / f"train.{x}")] for x in ("en", "de")]
    vocabularies = [Vocabulary(sorted(set(chain.from_iterable(side)))) for side in sides]
    encoded = [
        [vocabulary.encode(words) for words in side]
        for vocabulary, side in zip(vocabularies, sides, strict=True)
    ]
    write_store(path, zip(*encoded, strict=True))
    source, target = map(len, vocabularies)
    return (source, target), "the peer's input"


def synthetic(
    lengths: Iterable[int], types: tuple[int, int]
) -> Iterable[tuple[list[int], list[int]]]:
    """Yield pairs of random words, both sides of these lengths, ``</s>`` counted."""
    generator = np.random.default_rng(0)
    for length in lengths:
        source, target = (generator.integers(END + 2, top, length - 1).tolist() for top in types)
        yield [*source, END], [*target, END]
