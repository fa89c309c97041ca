"""What the benchmarks train on and translate: fairseq's input, or its lengths; random words."""

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from convs2s.config.architecture import ConvS2SArchitecture, parse_architecture
from convs2s.config.load import load
from convs2s.config.model import ModelSettings, Recipe
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END, Vocabulary
from convs2s.files.text import read_lines, write_lines

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ("multi30k", "wmt_en_fr", "wmt_en_de")
"""fairseq's training on Multi30k, and updates of its largest networks."""

FAIRSEQ: dict[str, dict[str, Any]] = {
    "architecture": {
        "embedding": 256,
        "output_embedding": 256,
        "encoder": [{"layers": 4, "width": 256, "kernel": 3}],
        "decoder": [{"layers": 3, "width": 256, "kernel": 3}],
        "dropout": 0.2,
        "gradient_scaling": "fairseq",
    },
    "training": {"batch": {"sentences": None, "tokens": 4000}},
}
"""fairseq's network and batches on Multi30k (golden/README.md)."""

FAIRSEQ_TYPES = (4385, 5766)
FAIRSEQ_PAIRS = 28_355
WMT_TYPES, TINY_TYPES = 40_000, 400
WMT_PAIRS, WMT_LENGTH = 80, 25
WMT_BATCHES = 12


@dataclass(frozen=True)
class Case:
    """A network of random weights and what it translates, with outputs of one length by force.

    Attributes:
        types: of each side's vocabulary, special tokens among them.
        source: tokens of each sentence.
        output: tokens of each translation.
        sentences: how many there are at a beam of 1, and half of them at a beam of 5.
        alone: how many are translated one at a time.
    """

    types: int
    source: int
    output: int
    sentences: int
    alone: int

    def lines(self, count: int) -> list[str]:
        """Return sentences of random words, always the same."""
        return random_lines(count, self.source, self.types // 2)


CASES = {
    "multi30k": Case(5_000, 14, 14, 1024, 100),
    "wmt_en_fr": Case(WMT_TYPES, 25, 30, 64, 4),
    "demo": Case(2_000, 10, 10, 1024, 100),
    "tiny": Case(TINY_TYPES, 5, 5, 8, 2),
}


def architecture_of(case: str) -> ConvS2SArchitecture:
    """Return the network of one of ``CASES``."""
    models, demo = load(ROOT), case in ("demo", "tiny")
    name = "small" if case == "multi30k" else "demo" if demo else f"fconv_{case}"
    stated = models.model(name).architecture
    if case == "multi30k":
        fairseq = stated.model_dump(mode="json") | FAIRSEQ["architecture"]
        stated = parse_architecture(fairseq, "fairseq's")
    assert isinstance(stated, ConvS2SArchitecture)
    return stated


def random_lines(count: int, length: int, types: int = 5000) -> list[str]:
    """Return sentences of random words ``w0``, ``w1`` and so on, always the same."""
    generator = random.Random(1)
    return [
        " ".join(f"w{generator.randrange(types)}" for _ in range(length))
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Workload:
    """What is trained on what.

    Attributes:
        architecture: the network.
        recipe: how it is trained.
        types: of each side, special tokens among them.
        store: the pairs.
        text: where they come from, in words.
    """

    architecture: ConvS2SArchitecture
    recipe: Recipe
    types: tuple[int, int]
    store: TokenStore
    text: str


def workload(
    shape: str,
    precision: str,
    folder: Path,
    pairs: int = WMT_PAIRS,
    length: int = WMT_LENGTH,
) -> Workload:
    """Make one of ``SHAPES``, or a tiny one; its store is written into ``folder``.

    Args:
        shape: its name.
        precision: of the training.
        folder: where to write.
        pairs: sentence pairs of a synthetic batch.
        length: their tokens on each side.
    """
    path = folder / f"{shape}.arrow"
    if shape == "multi30k":
        model = ModelSettings.model_validate({"description": "fairseq's", **FAIRSEQ})
        types, text = write_fairseq_pairs(path, fairseq_folder() / "bpe")
        batch = model.training.batch
    else:
        model = load(ROOT).model("demo" if shape == "tiny" else f"fconv_{shape}")
        count = TINY_TYPES if shape == "tiny" else WMT_TYPES
        types, text = (count, count), "synthetic"
        write_store(path, synthetic([length] * pairs * WMT_BATCHES, types))
        changes = {"sentences": pairs, "tokens": None, "micro_batch_tokens": None}
        batch = model.training.batch.model_copy(update=changes)
    recipe = model.training.model_copy(update={"batch": batch, "precision": precision})
    assert isinstance(model.architecture, ConvS2SArchitecture)
    return Workload(model.architecture, recipe, types, TokenStore(path), text)


def fairseq_folder() -> Path:
    """Return where fairseq's input and its results are, if they are there."""
    shared = Path(os.environ.get("CONVS2S_SHARED", ROOT.parent / "shared"))
    return shared / "golden" / "fairseq_multi30k"


def write_fairseq_pairs(path: Path, folder: Path) -> tuple[tuple[int, int], str]:
    """Write fairseq's input, or pairs of about its lengths; return the types and its origin."""
    if not folder.is_dir():
        lengths = np.random.default_rng(0).poisson(12.5, FAIRSEQ_PAIRS) + 3
        write_store(path, synthetic(lengths.tolist(), FAIRSEQ_TYPES))
        return FAIRSEQ_TYPES, "synthetic lengths"
    sides = [
        [line.split() for line in read_lines(folder / f"train.{x}")]
        for x in ("en", "de")
    ]
    vocabularies = [
        Vocabulary(sorted(set(chain.from_iterable(side)))) for side in sides
    ]
    encoded = [
        [vocabulary.encode(tokens) for tokens in side]
        for vocabulary, side in zip(vocabularies, sides, strict=True)
    ]
    write_store(path, zip(*encoded, strict=True))
    source, target = map(len, vocabularies)
    return (source, target), "fairseq's input"


def synthetic(
    lengths: Iterable[int], types: tuple[int, int]
) -> Iterable[tuple[list[int], list[int]]]:
    """Yield pairs of random tokens, both sides of these lengths, ``</s>`` counted."""
    generator = np.random.default_rng(0)
    for length in lengths:
        source, target = (
            generator.integers(END + 2, top, length - 1).tolist() for top in types
        )
        yield [*source, END], [*target, END]


def write_token_lines(store: TokenStore, sides: tuple[Path, Path]) -> None:
    """Write each side of the pairs as lines of ``w2``, ``w3`` and so on, without ``</s>``."""
    for side, path in enumerate(sides):
        write_lines(
            path, [" ".join(f"w{one}" for one in pair[side][:-1]) for pair in store]
        )
