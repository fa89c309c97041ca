"""Two systems of a task on one test set, run by run, for a person to read and as JSON beside it.

Seed i of one is held against seed i of the other. Resampling answers for the choice of the test
set's lines, not for the chance in a training: the seeds show that. So each pair has a p-value of
its own, and none is made of their mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.bleu import SAMPLES, BleuKind, Comparison, compare
from convs2s.scoring.summary import Mean, mean_and_deviation
from convs2s.scoring.text_table import aligned, heading, underlined
from convs2s.scoring.translations import DecodedLine, read_translations

Pairs = Mapping[str, tuple[Path, Path]]
"""Run -> the decoder's JSON lines of the baseline and of the system."""


@dataclass(frozen=True)
class SystemScore:
    """BLEU of a run, with half the width of its 95% confidence interval."""

    score: float
    interval: float


@dataclass(frozen=True)
class RunComparison:
    """A run of the system against the same run of the baseline."""

    baseline: SystemScore
    system: SystemScore
    difference: float
    p_value: float


@dataclass(frozen=True)
class ComparisonSummary:
    """Each pair of runs, and over them means with the sample's deviation."""

    signature: str
    baseline: Mean
    system: Mean
    difference: Mean
    runs: Mapping[str, RunComparison]


def compare_models(
    *,
    pairs: Pairs,
    raw: Path,
    tokenized: Path,
    text: Path,
    json: Path,
    stand_in: str | None,
    header: Mapping[str, str],
    test_set: str,
    manifest: Mapping[str, object],
    samples: int = SAMPLES,
) -> None:
    """Compare two systems by paired bootstrap resampling and write what came of it.

    Args:
        pairs: the translations to compare, in the order to print them in.
        raw: the target side as published, for detokenized BLEU.
        tokenized: the target side in the words of the task, for tokenized BLEU.
        text: the report to write.
        json: the same numbers unrounded, with the manifest.
        stand_in: what the data is, where it is not the paper's; it heads the report.
        header: what the report begins with; ``baseline`` and ``system`` are the models' names.
        test_set: the test set's name.
        manifest: what the numbers rest on.
        samples: how many times the test set is drawn anew for each pair.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    references: dict[BleuKind, Path] = {"tokenized": tokenized, "detokenized": raw}
    results = _results(pairs, references, samples)
    bleu = {kind: _summary(found) for kind, found in results.items()}
    lines = sum(1 for _ in read_lines(raw))
    about = {"stand_in": stand_in, **header, "test_set": test_set, "samples": samples}
    write_json(json, {**about, "lines": lines, "bleu": bleu, "manifest": manifest})
    title = f"{test_set}: {lines} lines; {_pairs(list(pairs))}, {samples} resamples each"
    write_lines(text, _report(stand_in, header, title, bleu))


def _results(
    pairs: Pairs, references: Mapping[BleuKind, Path], samples: int
) -> dict[BleuKind, dict[str, Comparison]]:
    results: dict[BleuKind, dict[str, Comparison]] = {kind: {} for kind in references}
    for run, paths in pairs.items():
        baseline, system = (read_translations(path) for path in paths)
        for kind, reference in references.items():
            results[kind][run] = compare(
                _lines(baseline, kind),
                _lines(system, kind),
                list(read_lines(reference)),
                kind=kind,
                samples=samples,
                names=(str(paths[0]), str(paths[1])),
            )
    return results


def _lines(translations: Sequence[DecodedLine], kind: BleuKind) -> list[str]:
    if kind == "tokenized":
        return [" ".join(translation.words) for translation in translations]
    return [translation.text for translation in translations]


def _summary(results: Mapping[str, Comparison]) -> ComparisonSummary:
    comparisons = list(results.values())
    return ComparisonSummary(
        signature=comparisons[0].baseline.signature,
        baseline=mean_and_deviation([one.baseline.score for one in comparisons]),
        system=mean_and_deviation([one.system.score for one in comparisons]),
        difference=mean_and_deviation([one.difference for one in comparisons]),
        runs={
            run: RunComparison(
                SystemScore(one.baseline.score, one.baseline_interval),
                SystemScore(one.system.score, one.system_interval),
                one.difference,
                one.p_value,
            )
            for run, one in results.items()
        },
    )


def _pairs(runs: Sequence[str]) -> str:
    each = "one pair of runs" if len(runs) == 1 else f"{len(runs)} pairs of runs"
    return f"{each} ({', '.join(runs)})"


def _report(
    stand_in: str | None,
    header: Mapping[str, str],
    title: str,
    bleu: Mapping[BleuKind, ComparisonSummary],
) -> Iterator[str]:
    yield from heading(stand_in, header)
    yield from underlined(title)
    for number, (kind, summary) in enumerate(bleu.items()):
        if number:
            yield ""
        yield f"{kind} BLEU  {summary.signature}"
        sides = (f"{header[side]} (95%)" for side in ("baseline", "system"))
        yield from aligned(["", *sides, "difference", "p-value"], _rows(summary))


def _rows(summary: ComparisonSummary) -> Iterator[list[str]]:
    for run, pair in summary.runs.items():
        scores = [f"{one.score:.2f} ± {one.interval:.2f}" for one in (pair.baseline, pair.system)]
        yield [run, *scores, f"{pair.difference:+.2f}", f"{pair.p_value:.4f}"]
    if len(summary.runs) > 1:
        means = [f"{one.mean:.2f}" for one in (summary.baseline, summary.system)]
        yield ["mean", *means, f"{summary.difference.mean:+.2f}", ""]
