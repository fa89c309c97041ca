"""Scores of the papers' tables, in the files in which the workflow has them."""

import json
from pathlib import Path
from typing import Any


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


def write(path: str, content: object) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return path
