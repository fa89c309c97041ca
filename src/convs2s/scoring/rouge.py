"""ROUGE-1, ROUGE-2 and ROUGE-L, equal to ROUGE-1.5.5.pl's for every item (docs/rouge.md).

The script's averages are means over its own bootstrap samples; those here are plain means, and the
bootstrap gives the confidence intervals alone.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from convs2s import __version__
from convs2s.config.task import RougePart
from convs2s.scoring.bleu import Lines, Score, check_lines
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


class Hits(NamedTuple):
    """N-grams, or words, of a hypothesis and a reference."""

    both: int
    reference: int
    hypothesis: int


class RougeTriple(NamedTuple):
    """Recall, precision and F1 of an item, 0 to 1, each rounded as the script prints it."""

    recall: float
    precision: float
    f1: float


RougeItem = Mapping[RougeKind, RougeTriple]  # what one hypothesis scores, in ROUGE_NAMES' order


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
        return [self._stemmed(word) for word in words] if self.stem else words

    def _stemmed(self, word: str) -> str:
        if len(word) <= _LONGEST_UNSTEMMED:
            return word
        base = self.exceptions.bases.get(word) if self.exceptions else None
        return base or rouge_stem(word)

    def signature(
        self,
        references: int,
        samples: int,
    ) -> str:
        """Return what a score of so many references and resamples is."""
        multi = "best" if self.best else "sum"
        if self.skip_empty:
            multi += "|empty:skipped"
        size = "all" if self.byte_limit is None else self.byte_limit
        stem = "yes" if self.stem else "no"
        exceptions = self.exceptions.digest if self.exceptions and self.stem else "no"
        return (
            f"ROUGE-1.5.5-equal|refs:{references}|multi:{multi}|bytes:{size}|stem:{stem}|"
            f"exceptions:{exceptions}|mean:plain|bs:{samples}|seed:{_SEED}|version:{__version__}"
        )


def rouge(
    hypotheses: Lines,
    *references: Lines,
    options: RougeOptions,
    samples: int = ROUGE_SAMPLES,
) -> RougeScores:
    """Score texts, a line each, against one or more references each.

    ``samples`` is how many times the items are drawn anew for the confidence intervals. No lines,
    and references that are not as long as the hypotheses, are refused with a UserError.
    """
    items = rouge_items(hypotheses, *references, options=options)
    return mean_rouge(items, options.signature(len(references), samples), samples)


def rouge_items(
    hypotheses: Lines,
    *references: Lines,
    options: RougeOptions,
) -> list[RougeItem]:
    """Score each text against its references, as the script's option ``-d`` prints it."""
    check_lines(hypotheses, references)
    items: list[RougeItem] = []
    for hypothesis, first, *further in zip(hypotheses, *references, strict=True):
        texts = [first]
        for text in further:
            if text.strip() or not options.skip_empty:
                texts.append(text)
        ours = options.words(hypothesis)
        theirs = [options.words(text) for text in texts]
        hits: dict[RougeKind, list[Hits]] = {
            "rouge_1": [ngram_hits(ours, words, 1) for words in theirs],
            "rouge_2": [ngram_hits(ours, words, 2) for words in theirs],
            "rouge_l": [subsequence_hits(ours, words) for words in theirs],
        }
        item = {}
        for kind, of_references in hits.items():
            if options.best:
                item[kind] = triple(_of_best_reference(kind, of_references))
            else:
                item[kind] = triple(Hits(*map(sum, zip(*of_references, strict=True))))
        items.append(item)
    return items


def _of_best_reference(kind: RougeKind, hits: Sequence[Hits]) -> Hits:
    """Return the hits of the highest recall, which the script rounds here but for ROUGE-L.

    Of equal ones it takes the first.
    """
    if kind == "rouge_l":
        return max(hits, key=lambda each: each.both / max(1, each.reference))
    return max(hits, key=lambda each: triple(each).recall)


def mean_rouge(
    items: Sequence[RougeItem],
    signature: str,
    samples: int,
) -> RougeScores:
    """Return the means over items and their 95% confidence intervals, by percentile bootstrap."""
    lines = len(items)
    values = np.array([list(item.values()) for item in items]).reshape(lines, -1)
    generator = np.random.default_rng(_SEED)
    means = []
    for _ in range(samples):
        drawn = generator.integers(lines, size=lines)
        means.append(np.bincount(drawn, minlength=lines) @ values / lines)
    low, high = 100 * np.quantile(means, _QUANTILES, axis=0)
    mean = 100 * values.mean(axis=0)
    columns = np.stack([mean, low, high], axis=1).tolist()
    scores: dict[RougeKind, dict[RougePart, RougeScore]] = {kind: {} for kind in ROUGE_NAMES}
    for (kind, part), column in zip(product(ROUGE_NAMES, ROUGE_PARTS), columns, strict=True):
        score, lowest, highest = column
        scores[kind][part] = RougeScore(score, signature, low=lowest, high=highest)
    return scores


def ngram_hits(
    hypothesis: Words,
    reference: Words,
    order: int,
) -> Hits:
    """Count the n-grams of both, each as often as it is in both."""
    ours = _ngrams(hypothesis, order)
    theirs = _ngrams(reference, order)
    return Hits((ours & theirs).total(), theirs.total(), ours.total())


def _ngrams(words: Words, order: int) -> Counter[tuple[str, ...]]:
    shifted = [words[start:] for start in range(order)]
    return Counter(zip(*shifted, strict=False))


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
    return Hits(len(reference) - row.bit_count(), len(reference), len(hypothesis))


def triple(hits: Hits) -> RougeTriple:
    """Return what follows from counts; nothing over nothing is 0."""
    recall = round(hits.both / hits.reference, _ROUNDED) if hits.reference else 0.0
    precision = round(hits.both / hits.hypothesis, _ROUNDED) if hits.hypothesis else 0.0
    total = recall + precision
    f1 = round(2 * recall * precision / total, _ROUNDED) if total else 0.0
    return RougeTriple(recall, precision, f1)
