"""ROUGE-1, ROUGE-2 and ROUGE-L, equal to ROUGE-1.5.5.pl's for every item (docs/rouge.md).

The script's averages are means over its own bootstrap samples; those here are plain means, and the
bootstrap gives the confidence intervals alone.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from convs2s import __version__
from convs2s.config.task import RougePart
from convs2s.scoring.bleu import Score, check_lines
from convs2s.scoring.rouge_stem import RougeExceptions, rouge_stem

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
_ROUNDED = 5  # decimal places to which the script prints recall and precision before it makes F
_LONGEST_UNSTEMMED = 3  # letters of a word that is short enough to be its own stem
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789"
# Every other byte separates words, those of a letter such as é too; so does a hyphen, of which the
# script makes a word of its own that it then does not count.
_BYTES = bytes(byte if byte in _KEPT else ord(" ") for byte in bytes(range(256)).lower())

Words = Sequence[str]
Hits = tuple[int, int, int]  # what is in both, what the reference has, what the hypothesis has


@dataclass(frozen=True)
class RougeTriple:
    """Recall, precision and F1 of an item, 0 to 1, each rounded as the script prints it."""

    recall: float
    precision: float
    f1: float


RougeItem = Mapping[RougeKind, RougeTriple]  # what one hypothesis scores


@dataclass(frozen=True)
class RougeScore(Score):
    """A mean over the items, 0 to 100, with the ends of its 95% confidence interval."""

    low: float
    high: float

    def __str__(self) -> str:
        """Return the number and its interval as reports print them."""
        return f"{self.score:.2f} ({self.low:.2f} to {self.high:.2f})"


RougeScores = Mapping[RougeKind, Mapping[RougePart, RougeScore]]


@dataclass(frozen=True)
class RougeOptions:
    """How texts are compared.

    Of each text only the first ``byte_limit`` bytes in UTF-8 count. The ``exceptions`` are looked
    up before a word of more than three letters is stemmed. Of several references the sum counts
    (the script's ``-f A``) or the ``best`` alone (``-f B``). ``skip_empty`` takes an empty line of
    a further reference as one that the item has not; to the script it is one without words.
    """

    byte_limit: int | None = None
    stem: bool = False
    exceptions: RougeExceptions | None = None
    best: bool = False
    skip_empty: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text that count: its bytes are cut, lowered and split."""
        words = text.encode()[: self.byte_limit].translate(_BYTES).decode("ascii").split()
        if not self.stem:
            return words
        bases = self.exceptions.bases if self.exceptions else {}
        return [
            word if len(word) <= _LONGEST_UNSTEMMED else bases.get(word) or rouge_stem(word)
            for word in words
        ]

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
    """Score texts, a line each, against one or more references each.

    ``samples`` is how many times the items are drawn anew for the confidence intervals. No lines,
    and references that are not as long as the hypotheses, are refused with a UserError.
    """
    items = rouge_items(hypotheses, *references, options=options)
    return mean_rouge(items, options.signature(len(references), samples), samples)


def _preference(name: RougeKind, hits: Hits) -> float:
    """Return what the script prefers a reference by: recall, which it rounds but for ROUGE-L."""
    return hits[0] / max(1, hits[1]) if name == "rouge_l" else triple(hits).recall


def rouge_items(
    hypotheses: Sequence[str], *references: Sequence[str], options: RougeOptions
) -> list[RougeItem]:
    """Score each text against its references, as the script's option ``-d`` prints it."""
    check_lines(hypotheses, references)
    items: list[RougeItem] = []
    for hypothesis, first, *further in zip(hypotheses, *references, strict=True):
        present = [text for text in further if text.strip() or not options.skip_empty]
        ours, theirs = options.words(hypothesis), [options.words(x) for x in (first, *present)]
        item: dict[RougeKind, RougeTriple] = {}
        for name, count in _COUNTS.items():
            hits = [count(ours, words) for words in theirs]
            if options.best:  # of equals the first
                item[name] = triple(max(hits, key=partial(_preference, name)))
            else:
                both, wanted, given = (sum(column) for column in zip(*hits, strict=True))
                item[name] = triple((both, wanted, given))
        items.append(item)
    return items


def mean_rouge(items: Sequence[RougeItem], signature: str, samples: int) -> RougeScores:
    """Return the means over items and their 95% confidence intervals, by percentile bootstrap."""
    columns = [(name, part) for name in ROUGE_NAMES for part in ROUGE_PARTS]
    values = np.array([[getattr(item[name], part) for name, part in columns] for item in items])
    generator, lines = np.random.default_rng(_SEED), len(values)
    drawn = (generator.integers(lines, size=lines) for _ in range(samples))
    means = [np.bincount(rows, minlength=lines) @ values / lines for rows in drawn]
    table = 100 * np.stack([values.mean(axis=0), *np.quantile(means, _QUANTILES, axis=0)])
    scores: dict[RougeKind, dict[RougePart, RougeScore]] = {name: {} for name in ROUGE_NAMES}
    for (name, part), (mean, low, high) in zip(columns, table.T.tolist(), strict=True):
        scores[name][part] = RougeScore(mean, signature, low, high)
    return scores


def ngram_hits(hypothesis: Words, reference: Words, order: int) -> Hits:
    """Count the n-grams of both, each as often as it is in both."""
    ours, theirs = (
        Counter(zip(*(words[start:] for start in range(order)), strict=False))
        for words in (hypothesis, reference)
    )
    both = sum(min(count, theirs[ngram]) for ngram, count in ours.items() if ngram in theirs)
    return both, theirs.total(), ours.total()


def subsequence_hits(hypothesis: Words, reference: Words) -> Hits:
    """Count the words of the longest common subsequence.

    A bit for each word of the reference: those that are 0 in the end are the subsequence's, and a
    word of the hypothesis changes all of them at once (Hyyrö 2004).
    """
    places: dict[str, int] = {}
    for number, word in enumerate(reference):
        places[word] = places.get(word, 0) | 1 << number
    all_bits = (1 << len(reference)) - 1
    row = all_bits
    for word in hypothesis:
        matching = row & places.get(word, 0)
        row = ((row + matching) | (row - matching)) & all_bits
    return len(reference) - row.bit_count(), len(reference), len(hypothesis)


_COUNTS: Mapping[RougeKind, Callable[[Words, Words], Hits]] = {
    "rouge_1": lambda ours, theirs: ngram_hits(ours, theirs, 1),
    "rouge_2": lambda ours, theirs: ngram_hits(ours, theirs, 2),
    "rouge_l": subsequence_hits,
}


def triple(hits: Hits) -> RougeTriple:
    """Return what follows from counts; nothing over nothing is 0."""
    both, references, hypotheses = hits
    recall = round(both / references, _ROUNDED) if references else 0.0
    precision = round(both / hypotheses, _ROUNDED) if hypotheses else 0.0
    total = recall + precision
    f1 = round(2 * recall * precision / total, _ROUNDED) if total else 0.0
    return RougeTriple(recall, precision, f1)
