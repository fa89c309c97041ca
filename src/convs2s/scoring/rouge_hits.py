"""What an item has in common with its references: n-grams, and the longest common subsequence."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DIGITS = 5
"""Decimal places to which the script prints recall and precision, before it makes F of them."""


@dataclass(frozen=True)
class RougeTriple:
    """Recall, precision and F1 of an item, 0 to 1, each rounded as the script prints it."""

    recall: float
    precision: float
    f1: float


Hits = tuple[int, int, int]
"""What is in both, what the reference has, what the hypothesis has."""


def ngram_hits(hypothesis: Sequence[str], reference: Sequence[str], order: int) -> Hits:
    """Count the n-grams of both, each as often as it is in both."""
    ours, theirs = (Counter(_ngrams(words, order)) for words in (hypothesis, reference))
    both = sum(min(count, theirs[ngram]) for ngram, count in ours.items() if ngram in theirs)
    return both, theirs.total(), ours.total()


def _ngrams(words: Sequence[str], order: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(order)), strict=False)


def subsequence_hits(hypothesis: Sequence[str], reference: Sequence[str]) -> Hits:
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


def triple(hits: Hits) -> RougeTriple:
    """Return what follows from counts; nothing over nothing is 0."""
    both, references, hypotheses = hits
    recall = round(both / references, _DIGITS) if references else 0.0
    precision = round(both / hypotheses, _DIGITS) if hypotheses else 0.0
    total = recall + precision
    f1 = round(2 * recall * precision / total, _DIGITS) if total else 0.0
    return RougeTriple(recall, precision, f1)
