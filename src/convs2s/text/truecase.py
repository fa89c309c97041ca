"""Truecasing: words at the start of a sentence get the case that they have elsewhere.

The rules are those of Moses' ``train-truecaser.perl``, ``truecase.perl`` and ``detruecase.perl``,
for tokenized text whose special characters are escaped. The truecaser of sacremoses is not used,
because it counts other words (after the end of a sentence it skips the quotes and brackets that
open the next one) and because it holds the whole text in memory. If two cases of a word are equally
frequent, the choice of the Perl scripts is arbitrary. Here the case with small letters is chosen.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, pairwise
from pathlib import Path

from convs2s.files.text import NO_MARK, read_lines, read_rows, write_lines

_HEADER = "word\tcount"
_SENTENCE_END = frozenset(".:?!")
_BEFORE_FIRST_WORD = frozenset(
    {"(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"}
)


class Truecaser:
    """Changes words to their true case as ``truecase.perl`` does.

    Within a sentence, a word keeps a case that occurs in the training text. All other words get
    their most frequent case. Words that the training text does not contain stay as they are.
    """

    def __init__(self, words: Iterable[str]) -> None:
        """Take the cased words of ``read_truecaser``, the most frequent case of each word first."""
        self._known = set[str]()
        self._best: dict[str, str] = {}
        for word in words:
            self._known.add(word)
            self._best.setdefault(word.lower(), word)

    def __call__(self, words: str) -> str:
        """Return a line of words, which are joined by single spaces, in their true case."""
        cased = []
        for word, starts in _with_starts(words.split(" ")):
            if starts or word not in self._known:
                word = self._best.get(word.lower(), word)
            cased.append(word)
        return " ".join(cased)


def detruecase(words: Sequence[str]) -> list[str]:
    """Capitalize the first letter of each sentence, as ``detruecase.perl`` does."""
    cased = []
    for word, starts in _with_starts(words):
        if starts:
            word = word[:1].upper() + word[1:]
        cased.append(word)
    return cased


def _with_starts(words: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each word of a line, and whether it starts a sentence.

    A sentence starts at the start of the line and after a word of ``_SENTENCE_END``. Quotes and
    brackets at its start count as starts, and so does the first word after them.
    """
    starts = True
    for word in words:
        yield word, starts
        starts = word in _SENTENCE_END or (starts and word in _BEFORE_FIRST_WORD)


def count_cases(lines: Iterable[str]) -> Counter[str]:
    """Count the words that do not start a sentence, as ``train-truecaser.perl`` does.

    Each case of a word is counted separately. Words without letters are not counted.
    """
    counts: Counter[str] = Counter()
    for line in lines:
        # The first word of the line is never the second item of a pair, so it is not counted.
        from_first_word = dropwhile(_BEFORE_FIRST_WORD.__contains__, line.split(" "))
        for before, word in pairwise(from_first_word):
            if before not in _SENTENCE_END and word.lower() != word.upper():
                counts[word] += 1
    return counts


def learn_truecaser(*, text: Path, output: Path) -> None:
    """Count the cased words of tokenized text, and write them as a table.

    The rows are sorted by the word in small letters. Of the cases of a word, the most frequent one
    comes first. Equally frequent cases are in descending order of code points, so that small
    letters, whose code points are greater, come first.
    """
    counts = count_cases(read_lines(text, mark=NO_MARK))
    # sorted is stable, so the first, descending sort decides between equally frequent cases.
    descending = sorted(counts, reverse=True)
    ordered = sorted(descending, key=lambda word: (word.lower(), -counts[word]))
    rows = (f"{word}\t{counts[word]}" for word in ordered)
    write_lines(output, chain([_HEADER], rows))


def read_truecaser(path: Path) -> list[str]:
    """Read the cased words of a truecaser in the order of its table.

    Raises:
        UserError: a line is malformed. The message names it.
    """
    return [word for word, _ in read_rows(path, _HEADER)]


def truecase_file(
    *,
    text: Path,
    truecaser: Path,
    output: Path,
) -> None:
    """Read tokenized text and write it in its true case."""
    truecase = Truecaser(read_truecaser(truecaser))
    write_lines(output, map(truecase, read_lines(text, mark=NO_MARK)))
