"""A task small enough to train in a second: target words are the source's, reversed and marked."""

import random
from pathlib import Path
from typing import Any

from convs2s.config_schema import schema, with_defaults
from convs2s.data.dataset import binarise, build_vocabulary
from convs2s.files import write_lines

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
                build_vocabulary(text, None, table, vocabulary, None)
        dataset = folder / "dataset"
        outputs = dataset / f"{split}.arrow", dataset / f"{split}.json"
        binarise(corpus, (None, None), tables, outputs, facts)
    return folder
