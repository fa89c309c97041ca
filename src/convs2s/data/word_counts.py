"""Count the words of a corpus in tables that are sorted by word.

Sorted tables can be added up without holding them in memory.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.files.text import NO_MARK, read_lines


def count_words(*, text: Path, output: Path) -> None:
    """Count the words of a tokenized file, and write a table of them, sorted by code point.

    All distinct words are held in memory, 150 bytes for each.
    """
    counts: Counter[str] = Counter()
    for line in read_lines(text, mark=NO_MARK):
        counts.update(line.split())
    write_counts(output, ((word, counts[word]) for word in sorted(counts)))


def added_counts(paths: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Yield each word in tables of :func:`count_words`, with the sum of its counts.

    The words are sorted by code point, as in each table.

    Raises:
        UserError: a line of a table is malformed. The message names it.
    """
    tables = [read_counts(path) for path in paths]
    # merge keeps the order, so that the entries of the same word are adjacent.
    for word, entries in groupby(merge(*tables), itemgetter(0)):
        yield word, sum(times for _, times in entries)
