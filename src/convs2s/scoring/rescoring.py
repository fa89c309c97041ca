"""What rescoring an n-best list gains: BLEU of four choices from it, as text and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from convs2s.files import atomic_text, read_lines, write_lines
from convs2s.scoring.bleu import detokenized_bleu, tokenized_bleu
from convs2s.scoring.n_best import (
    MODEL,
    Criterion,
    Group,
    average_with,
    best,
    every_sentence,
    read_n_best,
)
from convs2s.scoring.oracle import Reader, first_and_oracle
from convs2s.scoring.text_table import aligned, heading, underlined

CHOICES = {
    "first": "the list's own score",
    "model": "the rescoring model's score",
    "average": "the even average of both",
    "oracle": "oracle, by the references",
}


def write_rescoring(
    scored: Path,
    reference_raw: Path,
    reference_tokenized: Path,
    outputs: Mapping[str, Path],
    *,
    restore: Reader,
    stand_in: str | None,
    named: Mapping[str, str],
    test_set: str,
    manifest: Mapping[str, Any],
) -> None:
    """Choose from a scored n-best list in four ways, score each, and write the average's choice.

    Args:
        scored: the list, in words, with the feature of the rescoring model.
        reference_raw: the target side as published, for detokenized BLEU.
        reference_tokenized: the target side in the words of the task, for tokenized BLEU.
        outputs: what to write: ``translations`` (plain text), ``text`` (the report) and ``json``.
        restore: from words to plain text.
        stand_in: what the data is, where it is not the paper's; it heads the report.
        named: what the report begins with.
        test_set: the test set's name.
        manifest: what the numbers rest on.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    raw, tokenized = (list(read_lines(path)) for path in (reference_raw, reference_tokenized))
    choices = _choices(scored, tokenized)
    text = {name: list(map(restore, words)) for name, words in choices.items()}
    report = {
        "stand_in": stand_in,
        **named,
        "test_set": test_set,
        "lines": len(raw),
        "bleu": {
            name: {
                "tokenized": asdict(tokenized_bleu(words, tokenized)),
                "detokenized": asdict(detokenized_bleu(text[name], raw)),
            }
            for name, words in choices.items()
        },
        "manifest": manifest,
    }
    write_lines(outputs["translations"], text["average"])
    with atomic_text(outputs["json"]) as stream:
        json.dump(report, stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    write_lines(outputs["text"], _report(report, named))


def _choices(scored: Path, reference: Sequence[str]) -> dict[str, list[str]]:
    """Return each choice's words, reading the list anew for each: no more is in memory."""

    def groups() -> Iterator[Group]:
        return every_sentence(read_n_best(read_lines(scored), str(scored)))

    def by(criterion: Criterion) -> list[str]:
        return [best(group, criterion).text for group in groups()]

    first, oracle = first_and_oracle(groups(), [reference], "tokenized")
    model = by(lambda one: one.feature(MODEL))
    return {"first": first, "model": model, "average": by(average_with(MODEL)), "oracle": oracle}


def _report(report: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[str]:
    yield from heading(report["stand_in"], named)
    yield from underlined(f"{report['test_set']}: {report['lines']} lines, one hypothesis of each")
    header = ["chosen by", "tokenized BLEU", "detokenized BLEU"]
    kinds = ("tokenized", "detokenized")
    yield from aligned(
        header,
        (
            [CHOICES[name], *(f"{scores[kind]['score']:.2f}" for kind in kinds)]
            for name, scores in report["bleu"].items()
        ),
    )
    yield ""
    for kind in kinds:
        yield f"{kind} BLEU: {report['bleu']['first'][kind]['signature']}"
