"""What of the configuration results are known by: old ones keep their names."""

from pathlib import Path
from typing import Any

import pytest

from convs2s.config.architecture import (
    ConvS2SArchitecture,
    LstmArchitecture,
    VocabularySelection,
)
from convs2s.config.corpus import Titles
from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import counted, recipe_identity, training_settings
from convs2s.config.load import load
from convs2s.config.model import Recipe
from convs2s.config.section import Section
from convs2s.config.task import Task
from tests.support import tiny

DEFAULTS: dict[type[Section], dict[str, Any]] = {
    Recipe: {
        "start": None,
        "batch": {
            "sentences": 64,
            "tokens": None,
            "micro_batch_tokens": 4000,
            "lengths": None,
            "split": "accumulate",
        },
        "optimizer": "nesterov",
        "learning_rate": 0.25,
        "momentum": 0.99,
        "normalize": "tokens",
        "clip": 0.1,
        "label_smoothing": 0.0,
        "schedule": {
            "kind": "plateau",
            "divide_by": 10.0,
            "minimum": 0.0001,
            "hold": 5.0,
            "every": 1.0,
            "warmup": 0.5,
        },
        "velocity": "keep",
        "maximum_epochs": None,
        "best_by": None,
        "average": None,
        "precision": "fp32",
        "compile": False,
    },
    ConvS2SArchitecture: {
        "kind": "convs2s",
        "embedding": 512,
        "output_embedding": 512,
        "attention": "all",
        "attention_weights": None,
        "positions": {"source": True, "target": True, "maximum": 1024},
        "dropout": 0.1,
        "vocabulary_selection": None,
        "gradient_scaling": "paper",
    },
    VocabularySelection: {"frequent": 500, "candidates": 100},
    LstmArchitecture: {
        "layers": 4,
        "cells": 1000,
        "embedding": 1000,
        "dropout": 0.0,
        "initialization": 0.08,
        "reverse_source": True,
    },
    DecodingSettings: {
        "beam": 5,
        "length_penalty": 1.0,
        "minimum_length": 0,
        "maximum_length": {"factor": 1.5, "offset": 10},
        "unknown_penalty": 0.0,
        "finished": "replace",
        "replace_unknown": True,
        "vocabulary_selection": "model",
        "ensemble": "probabilities",
        "precision": "fp32",
        "cuda_graphs": False,
        "batch_sentences": 64,
        "batch_tokens": 4000,
    },
    Task: {
        "titles": None,
        "hold_out": None,
        "preparation": {
            "train": "moses_train",
            "test": "moses_test",
            "truecase": False,
        },
        "clean": {"minimum": 1, "maximum": 175, "ratio": 1.5, "tokens": 1023},
        "vocabulary": {
            "kind": "bpe",
            "merges": 8000,
            "joint": True,
            "threshold": 0,
            "glossaries": [],
            "source_size": None,
            "target_size": None,
            "minimum_count": 1,
        },
        "alignment": {
            "dictionary": "aligned",
            "aligner": "fast_align",
            "pairs": None,
            "seed": 1,
        },
    },
    Titles: {"one_in": 43},
}
"""A new key comes here with its default. None may change: a result is known by what its keys say
beside their defaults, so one of before would be taken for another."""

OF_THE_MACHINE = {"checkpoint_minutes", "tensorboard", "threads"}
OF_NO_TRAINING = {
    "text",
    "paper_pairs",
    "vocabulary_of",
    "n_best",
    "released",
    "headline",
    "metric",
    "metrics",
    "rouge",
}


def default(section: type[Section], key: str) -> Any:
    value = section.model_fields[key].get_default(call_default_factory=True)
    return value.model_dump(mode="json") if isinstance(value, Section) else value


@pytest.mark.parametrize("section", DEFAULTS, ids=lambda section: section.__name__)
def test_no_default_changes(section: type[Section]) -> None:
    optional = {
        key for key, field in section.model_fields.items() if not field.is_required()
    }
    found = {
        key: default(section, key) for key in optional - OF_THE_MACHINE - OF_NO_TRAINING
    }
    assert found == DEFAULTS[section]


def test_keys_that_are_newer_than_published_results_count_only_where_they_say_something() -> (
    None
):
    assert "best_by" not in counted(Recipe())
    assert counted(Recipe(best_by="bleu"))["best_by"] == "bleu"
    assert "cuda_graphs" not in counted(DecodingSettings())
    assert counted(DecodingSettings(cuda_graphs=True))["cuda_graphs"] is True


def test_what_changes_no_result_does_not_count() -> None:
    recipe = Recipe(checkpoint_minutes=1, tensorboard=True, threads=7)
    assert counted(recipe) == counted(Recipe())


def test_a_new_key_leaves_what_is_known_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Recipe2(Recipe):
        new: float = 0.5

    from convs2s.config import identity

    for name in ("_ALWAYS", "_NEVER"):
        table: dict[type, Any] = dict(getattr(identity, name))
        table[Recipe2] = table[Recipe]
        monkeypatch.setattr(identity, name, table)
    assert counted(Recipe2()) == counted(Recipe())
    assert counted(Recipe2(new=0.6)) == counted(Recipe()) | {"new": 0.6}


def test_null_is_stated_in_settings_and_left_out_of_an_identity() -> None:
    model = tiny.settings(batch={"sentences": None, "tokens": 100})
    stated = training_settings(model)["training"]
    known = recipe_identity(model.architecture, model.training)["training"]
    assert isinstance(stated, dict)
    assert isinstance(known, dict)
    assert stated["batch"]["sentences"] is None
    assert set(known["batch"]) == {"tokens", "micro_batch_tokens", "split"}


def test_a_task_counts_by_its_text(root: Path) -> None:
    task = load(root, {"scale": "demo"}).tasks["demo_en_fr"]
    keys = (
        "languages",
        "titles",
        "hold_out",
        "preparation",
        "clean",
        "vocabulary",
        "alignment",
    )
    assert counted(task).keys() == {*keys}
    assert "aligner" not in counted(task)["alignment"]
    assert "tokens" not in counted(task)["clean"]
