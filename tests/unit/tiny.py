"""A task small enough to train in a second: target words are the source's, reversed and marked."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from convs2s.config_schema import schema, with_defaults
from convs2s.data.dataset import binarize, build_vocabulary
from convs2s.data.vocabulary import Vocabulary
from convs2s.data.word_counts import count_words
from convs2s.files import read_lines, write_lines
from convs2s.models.build import build_network
from convs2s.training.data import TrainingData
from convs2s.training.interruption import Interruption
from convs2s.training.recipe import Recipe
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.workers import ALONE, Workers

WORDS = [f"w{index}" for index in range(12)]


def settings(**training: Any) -> dict[str, Any]:
    """Settings of a tiny model, every default filled in; ``training`` changes its recipe."""
    blocks = [{"layers": 1, "width": 16, "kernel": 3}]
    given = {
        "description": "tiny",
        "architecture": {
            "embedding": 16,
            "output_embedding": 16,
            "encoder": blocks,
            "decoder": [{"layers": 2, "width": 16, "kernel": 3}],
            "positions": {"maximum": 16},
        },
        "training": {"maximum_epochs": 3, "threads": 1, "batch": {"sentences": 16}} | training,
    }
    filled = with_defaults(given, schema("model"))
    return {key: filled[key] for key in ("architecture", "training")}


def prepare(folder: Path, pairs: int = 160) -> Path:
    """Write a prepared task's folder, as ``snakemake prepare`` does."""
    generator = random.Random(1)
    sources = [generator.choices(WORDS, k=generator.randint(1, 8)) for _ in range(pairs + 20)]
    return prepare_pairs(folder, sources, held_out=20, mark="x")


def prepare_pairs(
    folder: Path, sources: list[list[str]], held_out: int = 100, mark: str = ""
) -> Path:
    """Write the folder of a task whose targets are the sources, reversed and marked."""
    vocabulary = with_defaults({"kind": "word"}, schema("task")["properties"]["vocabulary"])
    facts = {
        "task": "tiny",
        "languages": {"source": "en", "target": "fr"},
        "preparation": "moses_test",
        "vocabulary": vocabulary,
    }
    tables = folder / "vocabulary" / "en.tsv", folder / "vocabulary" / "fr.tsv"
    for split, part in (("train", sources[:-held_out]), ("valid", sources[-held_out:])):
        corpus = folder / f"{split}.en", folder / f"{split}.fr"
        write_lines(corpus[0], (" ".join(words) for words in part))
        write_lines(corpus[1], (" ".join(f"{w}{mark}" for w in reversed(words)) for words in part))
        if split == "train":
            for text, table in zip(corpus, tables, strict=True):
                count_words(read_lines(text), folder / "words.tsv")
                build_vocabulary(folder / "words.tsv", None, table, vocabulary, None)
        dataset = folder / "dataset"
        outputs = dataset / f"{split}.arrow", dataset / f"{split}.json"
        binarize(corpus, (None, None), tables, outputs, facts)
    return folder


def trainer(
    task: Path,
    folder: Path,
    *,
    dropout: float = 0.0,
    seed: int = 1,
    workers: Workers = ALONE,
    device: str = "cpu",
    **changes: Any,
) -> Trainer:
    """Return a trainer of the tiny model in float64, with its states in ``folder``."""
    data = TrainingData.read(task)
    given = settings()
    given["architecture"]["dropout"] = dropout
    torch.manual_seed(seed)
    network = build_network(
        given["architecture"], *(len(Vocabulary(data.types[side])) for side in data.types)
    )
    return Trainer(
        network.double(),
        replace(Recipe.from_settings(given["training"]), **changes),
        (data.train, data.valid),
        StateFolder(folder, {}),
        seed=seed,
        device=device,
        checkpoint_minutes=60,
        stop=Interruption(),
        workers=workers,
    )
