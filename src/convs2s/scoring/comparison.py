"""Two systems of a task on one test set, run by run, for a person to read and as JSON beside it.

Seed i of one is held against seed i of the other. Resampling answers for the choice of the test
set's lines, not for the chance in a training: the seeds show that. So each pair has a p-value of
its own, and none is made of their mean.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.files import atomic_text, read_lines, write_lines
from convs2s.scoring.bleu import SAMPLES, BleuKind, Comparison, compare
from convs2s.scoring.summary import mean_and_deviation
from convs2s.scoring.text_table import aligned, heading, underlined
from convs2s.scoring.translations import Translation, read_translations

Pairs = Mapping[str, tuple[Path, Path]]
"""Run -> the decoder's JSON lines of the baseline and of the system."""

SIDES = ("baseline", "system")


def write_comparison(
    pairs: Pairs,
    reference_raw: Path,
    reference_tokenized: Path,
    output_txt: Path,
    output_json: Path,
    *,
    stand_in: str | None,
    named: Mapping[str, str],
    test_set: str,
    manifest: Mapping[str, Any],
    samples: int = SAMPLES,
) -> None:
    """Compare two systems by paired bootstrap resampling and write what came of it.

    Args:
        pairs: the translations to compare, in the order to print them in.
        reference_raw: the target side as published, for detokenized BLEU.
        reference_tokenized: the target side in the words of the task, for tokenized BLEU.
        output_txt: the report.
        output_json: the same numbers unrounded, with the manifest.
        stand_in: what the data is, where it is not the paper's; it heads the report.
        named: what the report begins with; ``baseline`` and ``system`` are the models' names.
        test_set: the test set's name.
        manifest: what the numbers rest on.
        samples: how many times the test set is drawn anew for each pair.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    references: dict[BleuKind, Path] = {
        "tokenized": reference_tokenized,
        "detokenized": reference_raw,
    }
    results = _results(pairs, references, samples)
    report = {
        "stand_in": stand_in,
        **named,
        "test_set": test_set,
        "samples": samples,
        "lines": sum(1 for _ in read_lines(reference_raw)),
        "bleu": {kind: _summary(found) for kind, found in results.items()},
        "manifest": manifest,
    }
    with atomic_text(output_json) as stream:
        json.dump(report, stream, ensure_ascii=False, indent=2)
        stream.write("\n")
    write_lines(output_txt, _report(report, named))


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


def _lines(translations: Sequence[Translation], kind: BleuKind) -> list[str]:
    if kind == "tokenized":
        return [" ".join(translation.words) for translation in translations]
    return [translation.text for translation in translations]


def _summary(results: Mapping[str, Comparison]) -> dict[str, Any]:
    """Return each pair's numbers and, over the pairs, means with the sample's deviation."""
    comparisons = list(results.values())
    return {
        "signature": comparisons[0].baseline.signature,
        "baseline": mean_and_deviation([one.baseline.score for one in comparisons]),
        "system": mean_and_deviation([one.system.score for one in comparisons]),
        "difference": mean_and_deviation([one.difference for one in comparisons]),
        "runs": {
            run: {
                "baseline": {"score": one.baseline.score, "interval": one.baseline_interval},
                "system": {"score": one.system.score, "interval": one.system_interval},
                "difference": one.difference,
                "p_value": one.p_value,
            }
            for run, one in results.items()
        },
    }


def _report(report: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[str]:
    yield from heading(report["stand_in"], named)
    runs = list(next(iter(report["bleu"].values()))["runs"])
    each = "one pair of runs" if len(runs) == 1 else f"{len(runs)} pairs of runs"
    yield from underlined(
        f"{report['test_set']}: {report['lines']} lines; {each} ({', '.join(runs)}), "
        f"{report['samples']} resamples each"
    )
    for number, (kind, bleu) in enumerate(report["bleu"].items()):
        if number:
            yield ""
        yield f"{kind} BLEU  {bleu['signature']}"
        header = ["", *(f"{named[side]} (95%)" for side in SIDES), "difference", "p-value"]
        yield from aligned(header, _rows(bleu))


def _rows(bleu: Mapping[str, Any]) -> Iterator[list[str]]:
    for run, result in bleu["runs"].items():
        scores = [f"{result[side]['score']:.2f} ± {result[side]['interval']:.2f}" for side in SIDES]
        yield [run, *scores, f"{result['difference']:+.2f}", f"{result['p_value']:.4f}"]
    if len(bleu["runs"]) > 1:
        scores = [f"{bleu[side]['mean']:.2f}" for side in SIDES]
        yield ["mean", *scores, f"{bleu['difference']['mean']:+.2f}", ""]
