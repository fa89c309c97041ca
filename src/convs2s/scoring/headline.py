"""bleu.txt: a task's scores over its runs, for a person to read, and the same as JSON beside it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from convs2s.files import atomic_text, write_lines
from convs2s.scoring.summary import BLEU_KINDS, summarize
from convs2s.scoring.text_table import aligned, heading, underlined

_COUNTS = ("total", "dictionary", "copied")


def headline(
    results: Mapping[tuple[str, str], Path],
    output_txt: Path,
    output_json: Path,
    *,
    task: str,
    model: str,
    decoding: str,
    stand_in: str | None,
    scale: str,
) -> None:
    """Write the headline report of a task.

    Args:
        results: the evaluation (JSON) of each test set and run, in the order to print them in.
        output_txt: the report.
        output_json: the same numbers unrounded, with every run's evaluation and manifest.
        task: the task's name.
        model: the model's name.
        decoding: the decoding's name.
        stand_in: what the data is, where it is not the paper's; it heads the report.
        scale: the scale's name.

    Raises:
        UserError: an evaluation is missing, or the runs of a test set were scored differently.
    """
    tests = {
        test: summarize({run: path for (name, run), path in results.items() if name == test})
        for test in dict.fromkeys(test for test, _ in results)
    }
    named = {"task": task, "model": model, "decoding": decoding, "scale": scale}
    with atomic_text(output_json) as stream:
        report = {"stand_in": stand_in, **named, "tests": tests}
        json.dump(report, stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    write_lines(output_txt, _report(stand_in, named, tests))


def _report(
    stand_in: str | None, named: Mapping[str, str], tests: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    yield from heading(stand_in, named)
    for number, (test, summary) in enumerate(tests.items()):
        if number:
            yield ""
        yield from _test_set(test, summary)


def _test_set(test: str, summary: Mapping[str, Any]) -> Iterator[str]:
    """Print a test set; each line of the first block can be understood, and grepped, alone."""
    runs = summary["runs"]
    over = "one run" if len(runs) == 1 else f"mean ± sample deviation of {len(runs)} runs"
    yield from underlined(f"{test}: {summary['lines']} lines; {over} ({', '.join(runs)})")
    for name, unit, digits, value in _metrics(summary):
        yield f"{test} {name:<16} = {_mean(value, digits):<14} {value.get('signature', unit)}"
    yield ""
    yield from aligned(["by run", *(name for name, *_ in _metrics(summary))], _by_run(runs))
    yield ""
    yield from aligned(
        ["unknown words", "found", "by dictionary", "copied", *_gain_columns()],
        _replacements(runs, summary),
    )


def _metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, int, Mapping[str, Any]]]:
    for kind in BLEU_KINDS:
        yield f"{kind} BLEU", "", 2, summary["bleu"][kind]
    yield "chrF", "", 2, summary["chrf"]
    unit = "words of the translation / words of the reference"
    yield "length ratio", unit, 3, summary["length_ratio"]


def _mean(value: Mapping[str, Any], digits: int) -> str:
    mean = f"{value['mean']:.{digits}f}"
    deviation = value["deviation"]
    return mean if deviation is None else f"{mean} ± {deviation:.{digits}f}"


def _by_run(runs: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    for run, result in runs.items():
        scores = [result["bleu"][kind]["score"] for kind in BLEU_KINDS] + [result["chrf"]["score"]]
        yield [run, *(f"{score:.2f}" for score in scores), f"{result['length_ratio']:.3f}"]


def _gain_columns() -> list[str]:
    return [f"{kind} BLEU before -> after" for kind in BLEU_KINDS]


def _replacements(
    runs: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]
) -> Iterator[list[str]]:
    """Say what unknown-word replacement did, by run and, where there are several, on average."""
    for run, result in runs.items():
        counts = [f"{result['unknown_words'][key]:,}" for key in _COUNTS]
        yield [run, *counts, *(_gain(result, kind, "score") for kind in BLEU_KINDS)]
    if len(runs) > 1:
        means = [f"{summary['unknown_words'][key]['mean']:,.1f}" for key in _COUNTS]
        yield ["mean", *means, *(_gain(summary, kind, "mean") for kind in BLEU_KINDS)]


def _gain(result: Mapping[str, Any], kind: str, key: str) -> str:
    before = result["before_replacement"]["bleu"][kind][key]
    after = result["bleu"][kind][key]
    return f"{before:.2f} -> {after:.2f} ({after - before:+.2f})"
