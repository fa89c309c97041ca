"""A task small enough to train in a second: target words are the source's, reversed and marked."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import yaml
from torch import Tensor

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import training_settings
from convs2s.config.load import merged
from convs2s.config.messages import validated
from convs2s.config.model import ModelSettings
from convs2s.config.task import DatasetMetadata, DataSource
from convs2s.data.batches import Indices
from convs2s.data.dataset import binarize, build_vocabulary, read_description
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import Vocabulary
from convs2s.data.word_counts import count_words
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import write_json, write_lines
from convs2s.layout import TaskFolder
from convs2s.manifest import run_manifest
from convs2s.models.build import build_network
from convs2s.models.recorded_ensemble import Recording
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.training.data import TrainingData
from convs2s.training.identity import TrainingJob
from convs2s.training.interruption import Interruption
from convs2s.training.progress import Watch
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater, UpdateReport
from convs2s.training.workers import ALONE, Workers

WORDS = [f"w{index}" for index in range(12)]
_SETTINGS = yaml.safe_load("""
description: tiny
architecture:
  embedding: 16
  output_embedding: 16
  encoder: [{layers: 1, width: 16, kernel: 3}]
  decoder: [{layers: 2, width: 16, kernel: 3}]
  positions: {maximum: 16}
training: {maximum_epochs: 3, threads: 1, batch: {sentences: 16}}
""")


def settings(
    architecture: dict[str, Any] | None = None, **training: Any
) -> ModelSettings:
    """Settings of a tiny model; the arguments change its network and its recipe."""
    changes = {"architecture": architecture or {}, "training": training}
    return validated(ModelSettings, merged(_SETTINGS, changes), "tiny")


def prepare(folder: Path, pairs: int = 160, name: str = "tiny") -> Path:
    """Write a prepared task's folder, as ``snakemake prepare`` does."""
    generator = random.Random(1)
    sources = [
        generator.choices(WORDS, k=generator.randint(1, 8)) for _ in range(pairs + 20)
    ]
    return prepare_pairs(folder, sources, held_out=20, mark="x", name=name)


def build_word_vocabulary(words: Path, table: Path) -> None:
    """Write the table of every word that the counts in ``words`` have."""
    build_vocabulary(
        words=words,
        bpe_codes=None,
        output=table,
        size=None,
        threshold=0,
        glossaries=(),
        minimum_count=1,
    )


def prepare_pairs(
    folder: Path,
    sources: list[list[str]],
    held_out: int = 100,
    mark: str = "",
    name: str = "tiny",
) -> Path:
    """Write the folder of a task whose targets are the sources, reversed and marked."""
    metadata = DatasetMetadata(
        task=name,
        languages=Languages(source="en", target="fr"),
        preparation="moses_test",
        vocabulary=VocabularySettings(kind="word"),
    )
    tables = folder / "vocabulary/en.tsv", folder / "vocabulary/fr.tsv"
    for split, part in (("train", sources[:-held_out]), ("valid", sources[-held_out:])):
        text = folder / f"{split}.en", folder / f"{split}.fr"
        targets = [[f"{word}{mark}" for word in reversed(words)] for words in part]
        for file, lines, table in zip(text, (part, targets), tables, strict=True):
            write_lines(file, map(" ".join, lines))
            if split == "train":
                count_words(text=file, output=folder / "words.tsv")
                build_word_vocabulary(folder / "words.tsv", table)
        binarize(
            text=text,
            bpe_codes=(),
            vocabularies=tables,
            store=folder / f"dataset/{split}.arrow",
            description=folder / f"dataset/{split}.json",
            metadata=metadata,
        )
    return folder


def trainer(
    task: Path,
    folder: Path,
    *,
    dropout: float = 0.0,
    seed: int = 1,
    workers: Workers = ALONE,
    device: str = "cpu",
    recording: Callable[[], Recording] | None = None,
    **training: Any,
) -> Trainer:
    """Return a trainer of the tiny model in float64, with its states in ``folder``.

    ``training`` changes its recipe, ``dropout`` its network. ``recording`` makes what it records
    its gradients with.
    """
    data = TrainingData.read(task)
    given = settings({"dropout": dropout}, checkpoint_minutes=60, **training)
    torch.manual_seed(seed)
    network = build_network(
        given.architecture, *(len(Vocabulary(data.types[side])) for side in data.types)
    )
    updater = Updater(
        network.double(),
        given.training,
        seed=seed,
        device=device,
        workers=workers,
        recording=recording,
    )
    states = StateFolder(folder, {})
    watch = Watch(states.progress, silent=not workers.is_first)
    return Trainer(updater, data, states, stop=Interruption(), watch=watch)


@contextmanager
def short_of_memory(*fits: bool) -> Iterator[None]:
    """Say of the first micro-batches in the block whether they fit into memory; all others do."""
    left = iter(fits)
    add = Updater._add_gradient

    def added(updater: Updater, *arguments: Any) -> Tensor | None:
        return add(updater, *arguments) if next(left, True) else None

    with mock.patch.object(Updater, "_add_gradient", added):
        yield
    assert not list(left)


def make_update(
    updater: Updater, store: TokenStore, rows: Indices, moment: Moment
) -> UpdateReport:
    """Make one update from the pairs ``rows``, wait for it, and return its figures."""
    started = updater.start(updater.load(store, rows), moment)
    (report,) = updater.read([started])
    return report


def job(
    task: Path, output: Path, given: ModelSettings | None = None, **changes: Any
) -> TrainingJob:
    """Return a training of the tiny model, or another one, on one thread of the CPU."""
    given = given or settings()
    stated = {"seed": 1, "dictionary": None, "device": "cpu", "threads": 1} | changes
    return TrainingJob(
        task, given.architecture, given.training, output=output, **stated
    )


def train_until(given: TrainingJob, epoch: int) -> None:
    """Train until the state of an epoch is written, then stop as if by Ctrl-C."""
    finish = Trainer._finish_epoch

    def finish_and_stop(trainer: Trainer) -> None:
        finish(trainer)
        if trainer.state.epoch > epoch:
            raise KeyboardInterrupt

    stopping = mock.patch.object(Trainer, "_finish_epoch", finish_and_stop)
    with stopping, pytest.raises(KeyboardInterrupt):
        train(given)


def write_results() -> None:
    """Write a training, translations and scores as a workflow in this folder leaves them."""
    task = TaskFolder("results/tiny")  # relative, as in the workflow's manifests
    prepare(Path(task.path))
    described = Path(task.store_description("train"))
    file = "https://example.org/train.en.gz"
    source = DataSource(file=file, sha256="a" * 64, licence="LicenseRef-WMT")
    metadata = read_description(described).model_copy(update={"sources": (source,)})
    write_json(described, metadata.model_dump(mode="json"))
    model = Path(task.model("small", "seed1"))
    train(job(Path(task.path), model))
    write_json(model.parents[1] / "settings.json", training_settings(settings()))
    for stage in ("raw", "tok"):
        for side in ("source", "target"):
            sentences = ["w1 w2 w3 w4", "w5 w6", "w7 w8 w9"]
            write_lines(task.text(stage, "test", side), sentences)
    raw, tokenized = (Path(task.text(one, "test", "target")) for one in ("raw", "tok"))
    lines = model.with_name("test.beam5.jsonl")
    decode_test_set(
        LineTranslator([model], DecodingSettings(minimum_length=3), "cpu"),
        source=Path(task.text("raw", "test", "source")),
        lines=lines,
        text=model.with_name("test.beam5.txt"),
    )
    evaluate_bleu(
        translations=lines,
        raw=raw,
        tokenized=tokenized,
        output=model.with_name("test.beam5.bleu.json"),
        test_set="test",
        manifest=run_manifest(map(str, (lines, model, raw, tokenized)), task="tiny"),
    )
