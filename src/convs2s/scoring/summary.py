"""Mean and deviation over runs that differ in the seed (section 4.3: average over three runs)."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from convs2s.errors import UserError
from convs2s.files.text import read_lines
from convs2s.scoring.bleu import Score
from convs2s.scoring.evaluation import BleuScores, Evaluation, UnknownWords

E = TypeVar("E")


@dataclass(frozen=True)
class Mean:
    """A mean over runs and their sample deviation; None for a single run."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class MeanScore(Mean):
    """The same of a score, with its signature."""

    signature: str


@dataclass(frozen=True)
class MeanBleu:
    """BLEU of its two kinds."""

    tokenized: MeanScore
    detokenized: MeanScore


@dataclass(frozen=True)
class MeanBeforeReplacement:
    """The scores of the same translations with their unknown words left in."""

    bleu: MeanBleu


@dataclass(frozen=True)
class MeanUnknownWords:
    """How many unknown words a run had, and what replaced them."""

    total: Mean
    dictionary: Mean
    copied: Mean


@dataclass(frozen=True)
class Summary:
    """What the runs on one test set scored: an `Evaluation` with means, and each run."""

    lines: int
    bleu: MeanBleu
    chrf: MeanScore
    length_ratio: Mean
    before_replacement: MeanBeforeReplacement
    unknown_words: MeanUnknownWords
    runs: Mapping[str, Evaluation]
    learned: MeanScore | None = None


def summarize(evaluations: Mapping[str, Path]) -> Summary:
    """Summarize the evaluations of one test set, one for each run, in the order given.

    Raises:
        UserError: a file is missing or is no evaluation, or two runs were scored on different
            lines or by different metrics, so that their mean would mean nothing.
    """
    runs = {run: read_evaluation(path) for run, path in evaluations.items()}
    results = list(runs.values())
    check_comparable({run: _measures(one) for run, one in runs.items()}, evaluations)
    return Summary(
        lines=results[0].lines,
        bleu=_mean_bleu([one.bleu for one in results]),
        chrf=mean_score([one.chrf for one in results]),
        length_ratio=mean_and_deviation([one.length_ratio for one in results]),
        before_replacement=MeanBeforeReplacement(
            _mean_bleu([one.before_replacement.bleu for one in results])
        ),
        unknown_words=mean_unknown_words([one.unknown_words for one in results]),
        runs=runs,
        learned=_mean_learned([one.learned for one in results]),
    )


def read_evaluation(path: Path) -> Evaluation:
    """Read the scores of one run on one test set.

    Raises:
        UserError: the file is missing, or is no evaluation of this version.
    """
    return read_as(Evaluation, path)


def read_as(kind: type[E], path: Path) -> E:
    """Read the scores of one run on one test set, of one kind of them.

    Raises:
        UserError: the file is missing, or is no evaluation of this version.
    """
    try:
        return TypeAdapter(kind).validate_json("\n".join(read_lines(path)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"{path}: no evaluation of this version ({place}: {first['msg']}); delete it and score "
            "again"
        ) from None


def check_comparable(
    measures: Mapping[str, Mapping[str, object]], paths: Mapping[str, Path]
) -> None:
    """Refuse to average what was measured differently, say by two versions of sacrebleu.

    Args:
        measures: run -> what must be equal in all, by its name.
        paths: run -> its evaluation.

    Raises:
        UserError: two runs differ; the message names both files.
    """
    first, *others = measures
    for run in others:
        expected = measures[first]
        for name, found in measures[run].items():
            if found != expected[name]:
                raise UserError(
                    f"{paths[run]}: {name}: {found}, but {expected[name]} in {paths[first]}: a "
                    "mean needs equal measures; delete both files and score again"
                )


def _measures(evaluation: Evaluation) -> dict[str, int | str]:
    return {
        "lines": evaluation.lines,
        "tokenized BLEU": evaluation.bleu.tokenized.signature,
        "detokenized BLEU": evaluation.bleu.detokenized.signature,
        "chrF": evaluation.chrf.signature,
        "learned metric": "none" if evaluation.learned is None else evaluation.learned.signature,
    }


def _mean_bleu(scores: Sequence[BleuScores]) -> MeanBleu:
    return MeanBleu(
        mean_score([one.tokenized for one in scores]),
        mean_score([one.detokenized for one in scores]),
    )


def _mean_learned(scores: Sequence[Score | None]) -> MeanScore | None:
    """Return the mean of a learned metric, which all runs have or none."""
    known = [score for score in scores if score is not None]
    return mean_score(known) if known else None


def mean_score(scores: Sequence[Score]) -> MeanScore:
    """Return the mean of scores of one signature."""
    mean = mean_and_deviation([one.score for one in scores])
    return MeanScore(mean.mean, mean.deviation, scores[0].signature)


def mean_unknown_words(counts: Sequence[UnknownWords]) -> MeanUnknownWords:
    """Return the means of what became of unknown words."""
    return MeanUnknownWords(
        mean_and_deviation([one.total for one in counts]),
        mean_and_deviation([one.dictionary for one in counts]),
        mean_and_deviation([one.copied for one in counts]),
    )


def mean_and_deviation(values: Sequence[float]) -> Mean:
    """Return the mean, and the sample's deviation unless there is a single value."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Mean(statistics.fmean(values), deviation)
