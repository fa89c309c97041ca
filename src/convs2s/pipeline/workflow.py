"""Pure functions behind the rules: names, seeds, fingerprints of code, logs. No Snakemake here.

Planning runs them with Snakemake's own packages alone, so they keep to the standard library.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.errors import UserError

PACKAGE = Path(__file__).resolve().parent

UNTUNED = 1.0
"""The length penalty of the n-best list by which another one is tuned."""


def alternatives(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these names, or nothing without names."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def members(run: str) -> list[str]:
    """Return the models of a run: ``ensemble2`` is seed1 and seed2, any other one is itself."""
    if run.startswith("ensemble"):
        return [f"seed{seed}" for seed in range(1, int(run.removeprefix("ensemble")) + 1)]
    return [run]


def headline_runs(task: Mapping[str, Any]) -> list[str]:
    """Return the runs that a task's headline rests on: its seeds, or its released model."""
    if task["released"]:
        return ["released"]
    return [f"seed{seed}" for seed in task["headline"]["seeds"]]


def splits(task: Mapping[str, Any]) -> list[str]:
    """Return the parts of a task's corpus that its headline needs."""
    tests = list(task["corpus"]["tests"])
    return tests if task["released"] else ["train", "valid", *tests]


def released_references(task: Mapping[str, Any]) -> list[str]:
    """Return the file references of a task's released model; none where it has none."""
    return [reference for reference in (task["released"] or {}).values() if reference]


def text_of(tasks: Mapping[str, Any], task: str) -> str:
    """Return the task whose corpus and alignment ``task`` uses: its ``text``, or itself."""
    return str(tasks[task]["text"] or task)


def language_pairs(tasks: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Return (source, target) languages -> the tasks with a corpus of their own in them."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, task in tasks.items():
        if task["text"] is None:
            languages = task["languages"]
            pairs.setdefault((languages["source"], languages["target"]), []).append(name)
    return pairs


def file_pairs(tasks: Mapping[str, Any], name: str, split: str) -> list[tuple[str, str]]:
    """Return the (source, target) file references that a split is made from.

    Raises:
        UserError: the task has no such test set.
    """
    corpus = tasks[name]["corpus"]
    if hold_out(tasks[name], split):
        pairs = corpus["train"]
    elif split in ("train", "valid"):
        pairs = corpus[split]
    elif split in corpus["tests"]:
        pairs = corpus["tests"][split]
    else:
        known = ", ".join(corpus["tests"])
        raise UserError(f"'{split}' is not a test set of the task {name}, which has {known}")
    return [(pair["source"], pair["target"]) for pair in pairs]


def hold_out(task: Mapping[str, Any], split: str) -> dict[str, Any] | None:
    """Return which training pairs a split takes, where validation is held out from training.

    The result is None, or ``every``: the period, and ``held``: whether the split takes every such
    pair (valid) or all others (train).
    """
    if task["hold_out"] is None or split not in ("train", "valid"):
        return None
    return {"every": task["hold_out"]["every"], "held": split == "valid"}


def corpus_facts(name: str, task: Mapping[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands beside the numbers of a corpus's pairs."""
    return {
        "task": name,
        "clean": task["clean"],
        "paper_pairs": task["paper_pairs"],
        "stand_in": scale["stand_in"],
    }


def model_text(task: Mapping[str, Any]) -> str:
    """Return the stage of the corpus whose words the task's models read."""
    return "truecased" if task["preparation"]["truecase"] else "clean"


def vocabulary_size(task: Mapping[str, Any], language: str) -> int | None:
    """Return the most types of a language's vocabulary, or None for all."""
    side = "source" if task["languages"]["source"] == language else "target"
    size: int | None = task["vocabulary"][f"{side}_size"]
    return size


def codes_name(vocabulary: Mapping[str, Any], language: str) -> str | None:
    """Return the name of a language's BPE codes: joint ones are one file; None for whole words."""
    if vocabulary["kind"] == "word":
        return None
    return "codes" if vocabulary["joint"] else f"codes.{language}"


def model_facts(name: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model file says of its task."""
    return {
        "task": name,
        "languages": task["languages"],
        "preparation": task["preparation"]["test"],
    }


def dataset_facts(name: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a token store's reader must know of its text."""
    return {**model_facts(name, task), "vocabulary": task["vocabulary"]}


def with_length_penalty(decoding: Mapping[str, Any], tuned: Sequence[str]) -> dict[str, Any]:
    """Return a decoding's settings with a number for the length penalty.

    Args:
        decoding: a validated entry of config/decodings.yaml.
        tuned: the JSON file of the tuning; none where the number is stated, and for the list that
            the tuning goes by, whose order does not matter.
    """
    if not isinstance(decoding["length_penalty"], Mapping):
        return dict(decoding)
    values = [json.loads(Path(path).read_text("utf-8"))["length_penalty"] for path in tuned]
    return {**decoding, "length_penalty": values[0] if values else UNTUNED}


def references(tasks: Mapping[str, Any]) -> set[str]:
    """Return every file reference of every task."""
    return {
        reference
        for name, task in tasks.items()
        for split in ("train", "valid", *task["corpus"]["tests"])
        for pair in file_pairs(tasks, name, split)
        for reference in pair
    }.union(*map(released_references, tasks.values()))


def checksum(sums: Path, name: str) -> str:
    """Return a file's SHA-256 from a list in the format of sha256sum.

    Raises:
        UserError: the list cannot be read, or does not name the file.
    """
    try:
        lines = sums.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{sums}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{sums}: cannot be read: {error}") from None
    for line in lines:
        digest, _, listed = line.partition("  ")
        if listed == name:
            return digest
    raise UserError(f"{sums}: no checksum for {name}: this scale's mirror does not hold the file")
