"""ROUGE-1, ROUGE-2 and ROUGE-L, equal to ROUGE-1.5.5.pl's for every item (docs/rouge.md).

The script's averages are means over its own bootstrap samples; those here are plain means, and the
bootstrap gives the confidence intervals alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from convs2s import __version__
from convs2s.config.task import RougePart
from convs2s.errors import UserError
from convs2s.scoring.bleu import Score
from convs2s.scoring.rouge_hits import Hits, RougeTriple, ngram_hits, subsequence_hits, triple
from convs2s.scoring.rouge_words import RougeExceptions, rouge_words

RougeKind = Literal["rouge_1", "rouge_2", "rouge_l"]

ROUGE_NAMES: Mapping[RougeKind, str] = {
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
}
ROUGE_PARTS: Mapping[RougePart, str] = {"recall": "recall", "precision": "precision", "f1": "F1"}

ROUGE_SAMPLES = 1000
"""Resamples of the confidence intervals, as many as the script takes by default."""

_SEED = 12345  # sacrebleu's
_QUANTILES = (0.025, 0.975)

RougeItem = Mapping[RougeKind, RougeTriple]
"""What one hypothesis scores."""


@dataclass(frozen=True)
class RougeScore(Score):
    """A mean over the items, 0 to 100, with its 95% confidence interval.

    Attributes:
        low: the interval's lower end.
        high: its upper end.
    """

    low: float
    high: float


RougeScores = Mapping[RougeKind, Mapping[RougePart, RougeScore]]


@dataclass(frozen=True)
class RougeOptions:
    """How texts are compared.

    Attributes:
        byte_limit: how many bytes of each text count; None: all.
        stem: whether words are stemmed.
        exceptions: irregular forms, for the stemmer.
        best: whether of several references the best alone counts (the script's ``-f B``), and not
            the sum over all of them (``-f A``).
        skip_empty: whether an empty line of a further reference is one that the item has not, as
            where items have two to four; to the script it is a reference without words.
    """

    byte_limit: int | None = None
    stem: bool = False
    exceptions: RougeExceptions | None = None
    best: bool = False
    skip_empty: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text that count."""
        return rouge_words(
            text, byte_limit=self.byte_limit, stem=self.stem, exceptions=self.exceptions
        )

    def present(self, references: Sequence[str]) -> list[str]:
        """Return those further references of an item that it has."""
        return [one for one in references if one.strip() or not self.skip_empty]

    def signature(self, references: int, samples: int) -> str:
        """Return what a score of so many references and resamples is."""
        stated = {
            "refs": references,
            "multi": "best" if self.best else "sum",
            **({"empty": "skipped"} if self.skip_empty else {}),
            "bytes": "all" if self.byte_limit is None else self.byte_limit,
            "stem": "yes" if self.stem else "no",
            "exceptions": self.exceptions.digest if self.exceptions and self.stem else "no",
            "mean": "plain",
            "bs": samples,
            "seed": _SEED,
            "version": __version__,
        }
        return "|".join(["ROUGE-1.5.5-equal", *(f"{key}:{stated[key]}" for key in stated)])


def rouge(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    options: RougeOptions,
    samples: int = ROUGE_SAMPLES,
) -> RougeScores:
    """Score texts against one or more references each.

    Args:
        hypotheses: a text a line; it may be empty.
        references: one or more lists of texts.
        options: how they are compared.
        samples: how many times the items are drawn anew for the confidence intervals.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    items = rouge_items(hypotheses, *references, options=options)
    return mean_rouge(items, options.signature(len(references), samples), samples)


def rouge_items(
    hypotheses: Sequence[str], *references: Sequence[str], options: RougeOptions
) -> list[RougeItem]:
    """Score each text against its references, as the script's option ``-d`` prints it.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    _check_counts(hypotheses, references)
    return [
        _item(
            options.words(hypothesis),
            [options.words(one) for one in (first, *options.present(others))],
            options.best,
        )
        for hypothesis, first, *others in zip(hypotheses, *references, strict=True)
    ]


def mean_rouge(items: Sequence[RougeItem], signature: str, samples: int) -> RougeScores:
    """Return the means over items and their 95% confidence intervals, by percentile bootstrap."""
    columns = [(kind, part) for kind in ROUGE_NAMES for part in ROUGE_PARTS]
    values = np.array([[getattr(item[kind], part) for kind, part in columns] for item in items])
    ends = _intervals(values, samples)
    table = 100 * np.stack([values.mean(axis=0), *ends]).reshape(3, len(ROUGE_NAMES), -1)
    return {
        kind: {
            part: RougeScore(float(mean), signature, float(low), float(high))
            for part, (mean, low, high) in zip(ROUGE_PARTS, of_kind.T, strict=True)
        }
        for kind, of_kind in zip(ROUGE_NAMES, table.transpose(1, 0, 2), strict=True)
    }


def _intervals(values: npt.NDArray[np.float64], samples: int) -> npt.NDArray[np.float64]:
    generator, lines = np.random.default_rng(_SEED), len(values)
    drawn = (generator.integers(lines, size=lines) for _ in range(samples))
    means = [np.bincount(one, minlength=lines) @ values / lines for one in drawn]
    ends: npt.NDArray[np.float64] = np.quantile(means, _QUANTILES, axis=0)
    return ends


_COUNTS: Mapping[RougeKind, Callable[[Sequence[str], Sequence[str]], Hits]] = {
    "rouge_1": lambda ours, theirs: ngram_hits(ours, theirs, 1),
    "rouge_2": lambda ours, theirs: ngram_hits(ours, theirs, 2),
    "rouge_l": subsequence_hits,
}


def _item(hypothesis: Sequence[str], references: Sequence[Sequence[str]], best: bool) -> RougeItem:
    found = {
        kind: [count(hypothesis, reference) for reference in references]
        for kind, count in _COUNTS.items()
    }
    together = _best if best else _summed
    return {kind: triple(together(hits)) for kind, hits in found.items()}


def _summed(hits: Iterable[Hits]) -> Hits:
    both, references, hypotheses = (sum(column) for column in zip(*hits, strict=True))
    return both, references, hypotheses


def _best(hits: Iterable[Hits]) -> Hits:
    return max(hits, key=lambda one: triple(one).recall)  # the first of equals


def _check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not hypotheses:
        raise UserError("no lines to score: give at least one")
    for number, reference in enumerate(references, start=1):
        if len(reference) != len(hypotheses):
            raise UserError(
                f"{len(hypotheses)} hypotheses, but reference {number} has {len(reference)} lines: "
                "line N of one belongs to line N of the other"
            )
