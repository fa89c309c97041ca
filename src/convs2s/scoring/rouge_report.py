"""rouge.txt: a task's ROUGE over its runs, for a person to read, and the same as JSON beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from convs2s.config.task import RougePart
from convs2s.files.text import write_json, write_lines
from convs2s.scoring.rouge import ROUGE_NAMES, ROUGE_PARTS, RougeScore, RougeScores
from convs2s.scoring.rouge_summary import MeanRouge, RougeSummary, summarize_rouge_runs
from convs2s.scoring.text_table import aligned, gain, heading, mean_text, underlined


def summarize_rouge(
    evaluations: Mapping[tuple[str, str], Path],
    *,
    text: Path,
    json: Path,
    header: Mapping[str, str],
    stand_in: str | None,
) -> None:
    """Write what the runs of a task scored on its test sets, beside the lead baseline.

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
        test: summarize_rouge_runs(
            {run: path for (name, run), path in evaluations.items() if name == test}
        )
        for test in dict.fromkeys(test for test, _ in evaluations)
    }
    summaries = {test: asdict(summary) for test, summary in tests.items()}
    write_json(json, {"stand_in": stand_in, **header, "tests": summaries})
    write_lines(text, _report(stand_in, header, tests))


def _report(
    stand_in: str | None, header: Mapping[str, str], tests: Mapping[str, RougeSummary]
) -> Iterator[str]:
    yield from heading(stand_in, header)
    for number, (test, summary) in enumerate(tests.items()):
        if number:
            yield ""
        yield from _test_set(test, summary)


def _test_set(test: str, summary: RougeSummary) -> Iterator[str]:
    """Print a test set; each line of the first block can be understood, and grepped, alone."""
    yield from underlined(f"{test}: {_lines(summary)}; {_over(list(summary.runs))}")
    yield from _headline(test, summary)
    yield ""
    part = ROUGE_PARTS[summary.measure]
    columns = [f"{name} {part} (95%)" for name in ROUGE_NAMES.values()]
    yield from aligned(["by run", *columns, "length ratio"], _by_run(summary))
    yield ""
    parts = list(ROUGE_PARTS.values())
    yield from aligned(
        ["on average", *parts, *(f"lead's {one}" for one in parts)], _all_parts(summary)
    )
    yield ""
    gains = [f"{name} {part} before -> after" for name in ROUGE_NAMES.values()]
    columns = ["unknown words", "found", "by dictionary", "copied", *gains]
    yield from aligned(columns, _replacements(summary))


def _lines(summary: RougeSummary) -> str:
    count = summary.references
    return f"{summary.lines} lines, {count} reference{'' if count == 1 else 's'} each"


def _over(runs: list[str]) -> str:
    over = "one run" if len(runs) == 1 else f"mean ± sample deviation of {len(runs)} runs"
    return f"{over} ({', '.join(runs)})"


def _headline(test: str, summary: RougeSummary) -> Iterator[str]:
    part = summary.measure
    lead = f"lead ({summary.lead.words} words)"
    for kind, name in ROUGE_NAMES.items():
        score, baseline = summary.rouge[kind][part], summary.lead.rouge[kind][part].score
        mean = mean_text(score.mean, score.deviation, 2)
        difference = f"difference = {summary.difference[kind][part]:+.2f}"
        sides = f"{mean:<14} {lead} = {baseline:.2f}  {difference}"
        yield f"{test} {f'{name} {ROUGE_PARTS[part]}':<17} = {sides}  {score.signature}"
    ratio = mean_text(summary.length_ratio.mean, summary.length_ratio.deviation, 3)
    yield f"{test} {'length ratio':<17} = {ratio:<14} words of the output / words of the reference"


def _by_run(summary: RougeSummary) -> Iterator[list[str]]:
    for run, result in summary.runs.items():
        yield [run, *_with_intervals(result.rouge, summary.measure), f"{result.length_ratio:.3f}"]
    yield ["lead", *_with_intervals(summary.lead.rouge, summary.measure), ""]


def _with_intervals(scores: RougeScores, part: RougePart) -> list[str]:
    return [_with_interval(scores[kind][part]) for kind in ROUGE_NAMES]


def _with_interval(score: RougeScore) -> str:
    return f"{score.score:.2f} ({score.low:.2f} to {score.high:.2f})"


def _all_parts(summary: RougeSummary) -> Iterator[list[str]]:
    for kind, name in ROUGE_NAMES.items():
        ours = [f"{summary.rouge[kind][part].mean:.2f}" for part in ROUGE_PARTS]
        lead = [f"{summary.lead.rouge[kind][part].score:.2f}" for part in ROUGE_PARTS]
        yield [name, *ours, *lead]


def _replacements(summary: RougeSummary) -> Iterator[list[str]]:
    """Say what unknown-word replacement did, by run and, where there are several, on average."""
    for run, result in summary.runs.items():
        counts = result.unknown_words
        numbers = [f"{one:,}" for one in (counts.total, counts.dictionary, counts.copied)]
        states = result.before_replacement.rouge, result.rouge
        before, after = (_scores(one, summary.measure) for one in states)
        yield [run, *numbers, *map(gain, before, after)]
    if len(summary.runs) > 1:
        means = summary.unknown_words
        numbers = [f"{one.mean:,.1f}" for one in (means.total, means.dictionary, means.copied)]
        both = summary.before_replacement.rouge, summary.rouge
        before, after = (_means(one, summary.measure) for one in both)
        yield ["mean", *numbers, *map(gain, before, after)]


def _scores(scores: RougeScores, part: RougePart) -> list[float]:
    return [scores[kind][part].score for kind in ROUGE_NAMES]


def _means(scores: MeanRouge, part: RougePart) -> list[float]:
    return [scores[kind][part].mean for kind in ROUGE_NAMES]
