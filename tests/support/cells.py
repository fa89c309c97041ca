"""The cells of the papers' tables, with the paths that the workflow gives their scores."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.paper import tables
from convs2s.paper.cells import Cell, cells
from convs2s.paper.results import entries_of, results


def bleu(after: float, before: float, lines: int = 500) -> dict[str, Any]:
    """A test set's scores as scoring writes them."""

    def both(score: float) -> dict[str, Any]:
        return {
            "tokenized": {"score": score, "signature": "nrefs:1|tok:none"},
            "detokenized": {"score": score + 0.5, "signature": "nrefs:1|tok:13a"},
        }

    return {
        "test_set": "test",
        "lines": lines,
        "bleu": both(after),
        "length_ratio": 0.98,
        "before_replacement": {"bleu": both(before)},
        "manifest": {
            "sha256": {"model.safetensors": "0a" * 32},
            "processor": "a processor",
        },
    }


def table(settings: Settings, name: str, scores: Sequence[str]) -> pd.DataFrame:
    """The table with those scores that are there."""
    measured = cells(settings, name)
    return frame_of(
        settings, name, results(measured, entries_of(settings, measured, scores))
    )


def frame_of(settings: Settings, name: str, found: Sequence[Cell]) -> pd.DataFrame:
    """What a table says, all text."""
    rows = tables.table_rows(settings, name, found)
    texts = [{heading: value.text for heading, value in row.items()} for row in rows]
    return pd.DataFrame(texts, dtype=str)


def write(path: str, content: object) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return path
