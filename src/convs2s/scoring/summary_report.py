"""bleu.txt: a task's scores over its runs, for a person to read, and the same as JSON beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from convs2s.files.text import write_json, write_lines
from convs2s.scoring.evaluation import BleuScores, Evaluation, UnknownWords
from convs2s.scoring.summary import Mean, MeanBleu, MeanScore, Summary, summarize
from convs2s.scoring.text_table import aligned, gain, heading, mean_text, underlined


def summarize_bleu(
    evaluations: Mapping[tuple[str, str], Path],
    *,
    text: Path,
    json: Path,
    header: Mapping[str, str],
    stand_in: str | None,
) -> None:
    """Write what the runs of a task scored on its test sets.

    Args:
        evaluations: the JSON file of each test set and run, in the order to print them in.
        text: the report to write.
        json: the same numbers unrounded, with every run's evaluation and manifest.
        header: what the report begins with: task, model, decoding, scale.
        stand_in: what the data is, where it is not the paper's; it heads the report.

    Raises:
        UserError: an evaluation is missing, or the runs of a test set were scored differently.
    """
    tests = {
        test: summarize({run: path for (name, run), path in evaluations.items() if name == test})
        for test in dict.fromkeys(test for test, _ in evaluations)
    }
    summaries = {test: asdict(summary) for test, summary in tests.items()}
    write_json(json, {"stand_in": stand_in, **header, "tests": summaries})
    write_lines(text, _report(stand_in, header, tests))


def _report(
    stand_in: str | None, header: Mapping[str, str], tests: Mapping[str, Summary]
) -> Iterator[str]:
    yield from heading(stand_in, header)
    for number, (test, summary) in enumerate(tests.items()):
        if number:
            yield ""
        yield from _test_set(test, summary)


def _test_set(test: str, summary: Summary) -> Iterator[str]:
    """Print a test set; each line of the first block can be understood, and grepped, alone."""
    runs = summary.runs
    over = "one run" if len(runs) == 1 else f"mean ± sample deviation of {len(runs)} runs"
    yield from underlined(f"{test}: {summary.lines} lines; {over} ({', '.join(runs)})")
    for name, unit, digits, value in _metrics(summary):
        mean = mean_text(value.mean, value.deviation, digits)
        yield f"{test} {name:<16} = {mean:<14} {unit}"
    yield ""
    yield from aligned(["by run", *(name for name, *_ in _metrics(summary))], _by_run(runs))
    yield ""
    gains = [f"{kind} BLEU before -> after" for kind in ("tokenized", "detokenized")]
    columns = ["unknown words", "found", "by dictionary", "copied", *gains]
    yield from aligned(columns, _replacements(summary))


def _metrics(summary: Summary) -> Iterator[tuple[str, str, int, Mean]]:
    """Yield each metric's name, its signature or unit, its decimal places and its mean."""
    scores: dict[str, MeanScore] = {
        "tokenized BLEU": summary.bleu.tokenized,
        "detokenized BLEU": summary.bleu.detokenized,
        "chrF": summary.chrf,
    }
    for name, score in scores.items():
        yield name, score.signature, 2, score
    if summary.learned is not None:
        signature = summary.learned.signature
        yield signature.partition("|")[0], signature, 4, summary.learned
    unit = "words of the translation / words of the reference"
    yield "length ratio", unit, 3, summary.length_ratio


def _by_run(runs: Mapping[str, Evaluation]) -> Iterator[list[str]]:
    for run, result in runs.items():
        scores = [result.bleu.tokenized, result.bleu.detokenized, result.chrf]
        learned = [] if result.learned is None else [f"{result.learned.score:.4f}"]
        shown = [*(f"{one.score:.2f}" for one in scores), *learned]
        yield [run, *shown, f"{result.length_ratio:.3f}"]


def _replacements(summary: Summary) -> Iterator[list[str]]:
    """Say what unknown-word replacement did, by run and, where there are several, on average."""
    for run, result in summary.runs.items():
        counts: UnknownWords = result.unknown_words
        before, after = (_numbers(one) for one in (result.before_replacement.bleu, result.bleu))
        numbers = [f"{one:,}" for one in (counts.total, counts.dictionary, counts.copied)]
        yield [run, *numbers, *map(gain, before, after)]
    if len(summary.runs) > 1:
        means = summary.unknown_words
        before, after = (_numbers(one) for one in (summary.before_replacement.bleu, summary.bleu))
        numbers = [f"{one.mean:,.1f}" for one in (means.total, means.dictionary, means.copied)]
        yield ["mean", *numbers, *map(gain, before, after)]


def _numbers(bleu: BleuScores | MeanBleu) -> tuple[float, float]:
    """Return tokenized and detokenized BLEU."""
    if isinstance(bleu, MeanBleu):
        return bleu.tokenized.mean, bleu.detokenized.mean
    return bleu.tokenized.score, bleu.detokenized.score
