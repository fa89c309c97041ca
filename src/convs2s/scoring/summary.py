"""Mean and deviation over runs that differ in the seed (section 4.3: average over three runs)."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.errors import UserError
from convs2s.files import read_lines
from convs2s.scoring.bleu import BleuKind

BLEU_KINDS: tuple[BleuKind, ...] = ("tokenized", "detokenized")


def summarize(evaluations: Mapping[str, Path]) -> dict[str, Any]:
    """Summarize the evaluations of one test set, one for each run, in the order given.

    Returns:
        ``lines``; ``bleu``, ``chrf``, ``length_ratio``, ``before_replacement`` and
        ``unknown_words`` as in an evaluation but with ``mean`` and ``deviation`` (the sample's,
        null for one run) in place of the number; and ``runs``, each evaluation whole.

    Raises:
        UserError: a file is missing, or two runs were scored on different lines or by different
            metrics, so that their mean would mean nothing.
    """
    runs = {run: _read(path) for run, path in evaluations.items()}
    results = list(runs.values())
    _check_comparable(runs, evaluations)
    before = [result["before_replacement"] for result in results]
    unknown = [result["unknown_words"] for result in results]
    return {
        "lines": results[0]["lines"],
        "bleu": _mean_bleus(results),
        "chrf": _mean_score([result["chrf"] for result in results]),
        "length_ratio": mean_and_deviation([result["length_ratio"] for result in results]),
        "before_replacement": {"bleu": _mean_bleus(before)},
        "unknown_words": {
            key: mean_and_deviation([counts[key] for counts in unknown]) for key in unknown[0]
        },
        "runs": runs,
    }


def _read(path: Path) -> dict[str, Any]:
    evaluation: dict[str, Any] = json.loads("\n".join(read_lines(path)))
    return evaluation


def _check_comparable(runs: Mapping[str, Mapping[str, Any]], paths: Mapping[str, Path]) -> None:
    """Refuse to average what was measured differently, say by two versions of sacrebleu."""
    first, *others = runs
    for run in others:
        for name, ours, theirs in zip(
            ("lines", "tokenized BLEU", "detokenized BLEU", "chrF"),
            _measures(runs[run]),
            _measures(runs[first]),
            strict=True,
        ):
            if ours != theirs:
                raise UserError(
                    f"{paths[run]}: {name}: {ours}, but {theirs} in {paths[first]}: a mean needs "
                    "equal measures; delete both files and score again"
                )


def _measures(evaluation: Mapping[str, Any]) -> tuple[Any, ...]:
    bleu = [evaluation["bleu"][kind]["signature"] for kind in BLEU_KINDS]
    return evaluation["lines"], *bleu, evaluation["chrf"]["signature"]


def _mean_bleus(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {kind: _mean_score([result["bleu"][kind] for result in results]) for kind in BLEU_KINDS}


def _mean_score(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        **mean_and_deviation([score["score"] for score in scores]),
        "signature": scores[0]["signature"],
    }


def mean_and_deviation(values: Sequence[float]) -> dict[str, float | None]:
    """Return ``mean`` and ``deviation``: the sample's, None for a single value."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "deviation": deviation}
