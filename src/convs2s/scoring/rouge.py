"""Compute ROUGE-1, ROUGE-2 and ROUGE-L, equal to ROUGE-1.5.5.pl's for each item (docs/rouge.md).

The script's averages are means over its bootstrap resamples. The averages here are plain means over
the items, and the bootstrap is used only for the confidence intervals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Literal, NamedTuple

import numpy as np

from convs2s import __version__
from convs2s.config.task import RougePart
from convs2s.scoring.bleu import LEAST_SHARE, Lines, Score, check_lines
from convs2s.scoring.rouge_stem import NO_EXCEPTIONS, RougeExceptions, rouge_stem

RougeKind = Literal["rouge_1", "rouge_2", "rouge_l"]

ROUGE_NAMES: Mapping[RougeKind, str] = {
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
}
ROUGE_PARTS: Mapping[RougePart, str] = {
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
}

ROUGE_SAMPLES = 1000
"""Bootstrap resamples for the confidence intervals, as many as the script takes by default."""

_SEED = 12345  # sacrebleu's
_QUANTILES = (0.025, 0.975)
# Decimal places to which the script rounds recall and precision, and then F1.
_ROUNDED = 5
_LONGEST_UNSTEMMED = 3  # words of up to 3 letters are not stemmed
_KEPT = b"abcdefghijklmnopqrstuvwxyz0123456789"
# A table for bytes.translate. It changes A to Z to lower case, and all bytes that are not in _KEPT
# to blanks, also those of a letter such as é. The script makes a separate word of a hyphen, but
# does not count this word, so here a hyphen becomes a blank, too.
_BYTES = bytes(
    byte if byte in _KEPT else ord(" ") for byte in bytes(range(256)).lower()
)

Words = Sequence[str]


class Hits(NamedTuple):
    """Counts of n-grams, or for ROUGE-L of words."""

    both: int  # in both the hypothesis and the reference
    reference: int
    hypothesis: int


class RougeTriple(NamedTuple):
    """Recall, precision and F1 of an item, 0 to 1, each rounded as the script prints it."""

    recall: float
    precision: float
    f1: float


# One hypothesis's scores, in the order of ROUGE_NAMES.
RougeItem = Mapping[RougeKind, RougeTriple]


@dataclass(frozen=True)
class RougeScore(Score):
    """A mean over the items, 0 to 100, with the ends of its 95% confidence interval."""

    low: float
    high: float

    def __str__(self) -> str:
        """Return the score and its interval, as reports print them."""
        return f"{self.score:.2f} ({self.low:.2f} to {self.high:.2f})"


RougeScores = Mapping[RougeKind, Mapping[RougePart, RougeScore]]


@dataclass(frozen=True)
class RougeOptions:
    """The options of a comparison of texts.

    - ``byte_limit``: only this many bytes at the beginning of each text count, in UTF-8.
    - ``stem``: words of more than three letters are stemmed.
    - ``exceptions``: irregular forms. A word that is among them gets its base form instead of a
      stem.
    - ``best``: of several references, only the best counts (the script's ``-f B``). Otherwise, the
      counts of all references are added (``-f A``).
    - ``skip_empty``: an empty line in any reference but the first means that the item does not have
      this reference. To the script, it is a reference without words.
    """

    byte_limit: int | None = None
    stem: bool = False
    exceptions: RougeExceptions = NO_EXCEPTIONS
    best: bool = False
    skip_empty: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text, after the byte limit, in lower case, stemmed if asked."""
        counted = text.encode()[: self.byte_limit].translate(_BYTES)
        words = counted.decode("ascii").split()
        if self.stem:
            for index, word in enumerate(words):
                if len(word) > _LONGEST_UNSTEMMED:
                    words[index] = self.exceptions.bases.get(word) or rouge_stem(word)
        return words

    def signature(self, references: int, samples: int) -> str:
        """Return the signature of scores with these options.

        ``references`` and ``samples`` are the numbers of references and of bootstrap resamples.
        """
        multi = "best" if self.best else "sum"
        if self.skip_empty:
            multi += "|empty:skipped"
        size = "all" if self.byte_limit is None else self.byte_limit
        stem = "yes" if self.stem else "no"
        exceptions = self.exceptions.digest if self.stem else "no"
        return (
            f"ROUGE-1.5.5-equal|refs:{references}|multi:{multi}|bytes:{size}|stem:{stem}|"
            f"exceptions:{exceptions}|mean:plain|bs:{samples}|seed:{_SEED}|version:{__version__}"
        )


def rouge(
    hypotheses: Lines,
    *references: Lines,
    options: RougeOptions,
) -> RougeScores:
    """Return the mean ROUGE scores of texts against one or more lists of references.

    Each line is one item. The confidence intervals are from `ROUGE_SAMPLES` bootstrap resamples.

    Raises:
        UserError: there are no lines, or a list of references differs in length from the
            hypotheses.
    """
    items = rouge_items(hypotheses, *references, options=options)
    signature = options.signature(len(references), ROUGE_SAMPLES)
    return mean_rouge(items, signature, ROUGE_SAMPLES)


def rouge_items(
    hypotheses: Lines,
    *references: Lines,
    options: RougeOptions,
) -> list[RougeItem]:
    """Return the scores of each text, as the script's option ``-d`` prints them."""
    check_lines(hypotheses, references)
    items: list[RougeItem] = []
    for hypothesis, *texts in zip(hypotheses, *references, strict=True):
        words = options.words(hypothesis)
        hits: dict[RougeKind, list[Hits]] = {kind: [] for kind in ROUGE_NAMES}
        for number, text in enumerate(texts):
            is_missing = options.skip_empty and number > 0 and not text.strip()
            if is_missing:
                continue
            reference = options.words(text)
            hits["rouge_1"].append(ngram_hits(words, reference, 1))
            hits["rouge_2"].append(ngram_hits(words, reference, 2))
            hits["rouge_l"].append(subsequence_hits(words, reference))
        item = {}
        for kind, reference_hits in hits.items():
            if options.best:
                counted = _best_hits(kind, reference_hits)
            else:
                # Add the counts of all references, field by field.
                counted = Hits(*map(sum, zip(*reference_hits, strict=True)))
            item[kind] = triple(counted)
        items.append(item)
    return items


def warning_of_rouge(*references: Lines) -> str | None:
    """Return a warning if ROUGE does not see most letters of the references, or else None."""
    lines = list(chain(*references))
    unseen = 0
    for line in lines:
        letters = list(filter(str.isalpha, line))
        seen_letters = sum(map(str.isascii, letters))
        if 2 * seen_letters < len(letters):
            unseen += 1
    if not unseen or unseen < LEAST_SHARE * len(lines):
        return None
    return (
        "ROUGE counts words of a to z and 0 to 9 only, as ROUGE-1.5.5.pl does, and most letters of "
        f"{unseen:,} of {len(lines):,} lines of references are others: score such text by BLEU "
        "(`convs2s score bleu`, with --tokenize zh or char in scripts without blanks; `metric: "
        "bleu` in a task's file), or by a metric of your own (docs/rouge.md)"
    )


def _best_hits(kind: RougeKind, hits: Sequence[Hits]) -> Hits:
    """Return the counts with the reference that gives the highest recall, the first of equals.

    Like the script, this compares rounded recalls for ROUGE-1 and ROUGE-2, but unrounded ones for
    ROUGE-L.
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
    # (lines, 9): one column for each pair of a kind and a part.
    values = np.array([list(item.values()) for item in items]).reshape(lines, -1)
    generator = np.random.default_rng(_SEED)
    resampled_means = []
    for _ in range(samples):
        drawn = generator.integers(lines, size=lines)
        resampled_means.append(np.bincount(drawn, minlength=lines) @ values / lines)
    lows, highs = (100 * np.quantile(resampled_means, _QUANTILES, axis=0)).tolist()
    means = (100 * values.mean(axis=0)).tolist()
    scores: dict[RougeKind, dict[RougePart, RougeScore]] = {
        kind: {} for kind in ROUGE_NAMES
    }
    for column, (kind, part) in enumerate(product(ROUGE_NAMES, ROUGE_PARTS)):
        scores[kind][part] = RougeScore(
            means[column], signature, low=lows[column], high=highs[column]
        )
    return scores


def ngram_hits(
    hypothesis: Words,
    reference: Words,
    order: int,
) -> Hits:
    """Count n-grams. In ``both``, each counts as often as in the text that has fewer of it."""
    ours = _ngrams(hypothesis, order)
    theirs = _ngrams(reference, order)
    shared = ours & theirs
    return Hits(both=shared.total(), reference=theirs.total(), hypothesis=ours.total())


def _ngrams(words: Words, order: int) -> Counter[tuple[str, ...]]:
    shifted = [words[start:] for start in range(order)]
    # zip stops at the end of the shortest list, which is the last one.
    return Counter(zip(*shifted, strict=False))


def subsequence_hits(hypothesis: Words, reference: Words) -> Hits:
    """Count the words of the longest common subsequence, and of both texts.

    This is the bit-parallel algorithm of Hyyrö (2004). An integer has one bit for each word of the
    reference. Each word of the hypothesis updates all bits at once. At the end, the number of zero
    bits is the length of the subsequence.
    """
    # Word -> the bits of its positions in the reference.
    bits_of_word: dict[str, int] = {}
    for position, word in enumerate(reference):
        bits_of_word[word] = bits_of_word.get(word, 0) | (1 << position)
    all_bits = (1 << len(reference)) - 1
    row = all_bits
    for word in hypothesis:
        matching = row & bits_of_word.get(word, 0)
        row = ((row + matching) | (row - matching)) & all_bits
    length = len(reference) - row.bit_count()
    return Hits(both=length, reference=len(reference), hypothesis=len(hypothesis))


def triple(hits: Hits) -> RougeTriple:
    """Return recall, precision and F1 of counts, rounded as in the script.

    A ratio whose denominator is 0 is 0.
    """
    recall = round(hits.both / hits.reference, _ROUNDED) if hits.reference else 0.0
    precision = round(hits.both / hits.hypothesis, _ROUNDED) if hits.hypothesis else 0.0
    total = recall + precision
    f1 = round(2 * recall * precision / total, _ROUNDED) if total else 0.0
    return RougeTriple(recall, precision, f1)
