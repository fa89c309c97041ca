"""Truecasing: words at the start of a sentence get the case that they have elsewhere.

The rules are those of Moses' ``train-truecaser.perl``, ``truecase.perl`` and ``detruecase.perl``,
for tokenized text whose special characters are escaped. sacremoses has them as well, but counts
other words (after a closing sentence it skips what opens the next one) and holds the whole text in
memory. Where two cases of a word are equally frequent, Perl takes either, here small letters win.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, pairwise
from pathlib import Path

from convs2s.files.text import NO_MARK, read_lines, read_rows, write_lines

_HEADER = "word\tcount"
_SENTENCE_END = frozenset(".:?!")
_BEFORE_FIRST_WORD = frozenset({"(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"})


class Truecaser:
    """``truecase.perl``: a known case stays within a sentence, else the most frequent is taken."""

    def __init__(self, words: Iterable[str]) -> None:
        """Take words as ``read_truecaser`` gives them: of each, the most frequent case first."""
        self._known = set[str]()
        self._best: dict[str, str] = {}
        for word in words:
            self._known.add(word)
            self._best.setdefault(word.lower(), word)

    def __call__(self, words: str) -> str:
        """Return words, joined by single spaces, in their true case."""
        cased = []
        for word, starts in _with_starts(words.split(" ")):
            if starts or word not in self._known:
                word = self._best.get(word.lower(), word)
            cased.append(word)
        return " ".join(cased)


def detruecase(words: Sequence[str]) -> list[str]:
    """Return words with the first letter of each sentence capital, as ``detruecase.perl`` does."""
    cased = []
    for word, starts in _with_starts(words):
        if starts:
            word = word[:1].upper() + word[1:]
        cased.append(word)
    return cased


def _with_starts(words: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it starts a sentence."""
    starts = True
    for word in words:
        yield word, starts
        starts = word in _SENTENCE_END or (starts and word in _BEFORE_FIRST_WORD)


def count_cases(lines: Iterable[str]) -> Counter[str]:
    """Count cased words that do not start a sentence, as ``train-truecaser.perl`` does."""
    counts: Counter[str] = Counter()
    for line in lines:
        from_first = dropwhile(_BEFORE_FIRST_WORD.__contains__, line.split(" "))
        for before, word in pairwise(from_first):
            if before not in _SENTENCE_END and word.lower() != word.upper():
                counts[word] += 1
    return counts


def learn_truecaser(*, text: Path, output: Path) -> None:
    """Write a table of words of tokenized text and their counts, the most frequent case first."""
    counts = count_cases(read_lines(text, mark=NO_MARK))
    # Of equally frequent cases small letters, which come after capital ones, are to be first.
    ordered = sorted(sorted(counts, reverse=True), key=lambda word: (word.lower(), -counts[word]))
    rows = (f"{word}\t{counts[word]}" for word in ordered)
    write_lines(output, chain([_HEADER], rows))


def read_truecaser(path: Path) -> list[str]:
    """Return the words of a truecaser in the order of its table; a UserError names a bad line."""
    return [word for word, _ in read_rows(path, _HEADER)]


def truecase_file(*, text: Path, truecaser: Path, output: Path) -> None:
    """Write tokenized text in its true case."""
    truecase = Truecaser(read_truecaser(truecaser))
    write_lines(output, map(truecase, read_lines(text, mark=NO_MARK)))
