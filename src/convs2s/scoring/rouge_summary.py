"""ROUGE over runs that differ in the seed, and what the lead baseline has beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.task import RougePart
from convs2s.scoring.rouge import ROUGE_NAMES, ROUGE_PARTS, RougeKind, RougeScores
from convs2s.scoring.rouge_evaluation import LeadBaseline, RougeEvaluation
from convs2s.scoring.summary import (
    Mean,
    MeanScore,
    MeanUnknownWords,
    check_comparable,
    mean_and_deviation,
    mean_score,
    mean_unknown_words,
    read_as,
)

MeanRouge = Mapping[RougeKind, Mapping[RougePart, MeanScore]]


@dataclass(frozen=True)
class MeanRougeBeforeReplacement:
    """The scores of the same outputs with their unknown words left in."""

    rouge: MeanRouge


@dataclass(frozen=True)
class RougeSummary:
    """What the runs on one test set scored: a `RougeEvaluation` with means, and each run.

    ``difference`` is what the runs have more than the lead baseline, which is the same for all.
    """

    lines: int
    references: int
    measure: RougePart
    rouge: MeanRouge
    lead: LeadBaseline
    difference: Mapping[RougeKind, Mapping[RougePart, float]]
    length_ratio: Mean
    before_replacement: MeanRougeBeforeReplacement
    unknown_words: MeanUnknownWords
    runs: Mapping[str, RougeEvaluation]


def summarize_rouge_runs(evaluations: Mapping[str, Path]) -> RougeSummary:
    """Summarize the evaluations of one test set, one for each run, in the order given.

    Raises:
        UserError: a file is missing or is no evaluation, or two runs were scored on different
            lines or in different ways, so that their mean would mean nothing.
    """
    runs = {run: read_as(RougeEvaluation, path) for run, path in evaluations.items()}
    check_comparable({run: _measures(one) for run, one in runs.items()}, evaluations)
    results = list(runs.values())
    first = results[0]
    means = _mean_rouge([one.rouge for one in results])
    before = _mean_rouge([one.before_replacement.rouge for one in results])
    return RougeSummary(
        lines=first.lines,
        references=first.references,
        measure=first.measure,
        rouge=means,
        lead=first.lead,
        difference={
            kind: {part: means[kind][part].mean - score.score for part, score in parts.items()}
            for kind, parts in first.lead.rouge.items()
        },
        length_ratio=mean_and_deviation([one.length_ratio for one in results]),
        before_replacement=MeanRougeBeforeReplacement(before),
        unknown_words=mean_unknown_words([one.unknown_words for one in results]),
        runs=runs,
    )


def _measures(evaluation: RougeEvaluation) -> dict[str, object]:
    """Return what the runs of a mean share; equal leads mean equal sources and references."""
    leads = {kind: evaluation.lead.rouge[kind]["f1"].score for kind in ROUGE_NAMES}
    return {
        "lines": evaluation.lines,
        "measure": evaluation.measure,
        "ROUGE": evaluation.rouge["rouge_1"]["f1"].signature,
        "words of the lead baseline": evaluation.lead.words,
        **{f"the lead baseline's {ROUGE_NAMES[kind]} F1": score for kind, score in leads.items()},
    }


def _mean_rouge(scores: Sequence[RougeScores]) -> MeanRouge:
    return {
        kind: {part: mean_score([one[kind][part] for one in scores]) for part in ROUGE_PARTS}
        for kind in ROUGE_NAMES
    }
