"""Score files of a few lines, as the rules write them, and their summaries."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convs2s.config.task import RougeSettings
from convs2s.files.text import write_lines
from convs2s.scoring.evaluation import (
    BleuEvaluation,
    RougeEvaluation,
    evaluate_bleu,
    evaluate_rouge,
)
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.summary import summarize_runs

WORDS = "l&apos; avion low @-@ cost est là ."
TEXT = "l'avion low-cost est là."
SOURCES = ["the old cat sleeps all day", "two dogs ran far away", "rain in Lyon"]
REFERENCES = ["the cat sleeps", "dogs run away", ""]
FURTHER = ["cats sleep in Kofagrad", "two dogs gone", "it rains"]
OUTPUTS = ["the cat sleeps in Kofagrad", "two dogs away", "rain"]


def decoded(
    line: int, text: str, words: str = "", unknown: str = "Kofagrad", by: str = "copied"
) -> dict[str, Any]:
    """Return a line of the decoder's, in which a word was unknown."""
    words = words or text
    replaced = {"source_word": "No1", "word": unknown, "by": by}
    return {
        "line": line,
        "source": SOURCES[line % 3 - 1],
        "text": text,
        "words": words.split(),
        "text_before": text.replace(unknown, "<unk>"),
        "words_before": words.replace(unknown, "<unk>").split(),
        "replacements": [replaced] if unknown in text else [],
    }


def scored_bleu(
    folder: Path, name: str, lines: Sequence[object], text: str = TEXT, **options: Any
) -> Path:
    """Score lines against ``WORDS`` and ``text`` on each; return the file."""
    write_lines(folder / "lines", map(json.dumps, lines))
    write_lines(folder / "tokenized", [WORDS] * len(lines))
    write_lines(folder / "raw", [text] * len(lines))
    evaluate_bleu(
        translations=folder / "lines",
        raw=folder / "raw",
        tokenized=folder / "tokenized",
        output=folder / name,
        test_set="test",
        manifest={"seed": 1},
        **options,
    )
    return folder / name


def scored_rouge(
    folder: Path,
    name: str,
    outputs: Sequence[str] = OUTPUTS,
    references: Sequence[Sequence[str]] = (REFERENCES, FURTHER),
    counts: Path | None = None,
    **stated: Any,
) -> Path:
    """Score three outputs; return the file."""
    lines = [decoded(number, text) for number, text in enumerate(outputs, 1)]
    write_lines(folder / "lines", map(json.dumps, lines))
    paths = []
    for number, texts in enumerate(references):
        paths.append(folder / f"reference{number}")
        write_lines(paths[-1], texts)
    write_lines(folder / "exceptions.tsv", ["gone\tgo"])
    evaluate_rouge(
        translations=folder / "lines",
        references=paths,
        exceptions=folder / "exceptions.tsv",
        output=folder / name,
        test_set="test",
        settings=RougeSettings(**{"lead_words": 3} | stated),
        manifest={"seed": 1},
        counts=counts,
    )
    return folder / name


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def report(
    folder: Path,
    kind: type[BleuEvaluation | RougeEvaluation],
    runs: dict[tuple[str, str], Path],
    stand_in: str | None = None,
    counts: Path | None = None,
) -> tuple[str, Any]:
    """Summarize runs; return the text and the JSON."""
    files = (folder / "bleu.txt", folder / "bleu.json")
    summarize_runs(kind, runs, Report(*files, stand_in, {"task": "demo"}), counts)
    return files[0].read_text("utf-8"), read(files[1])
