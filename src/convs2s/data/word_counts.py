"""How often each word of a corpus occurs: tables sorted by word, which are cheap to add up."""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.files.text import NO_MARK, read_lines


def count_words(*, text: Path, output: Path) -> None:
    """Write how often each word of a tokenized file occurs, sorted by code point.

    All types are in memory, which takes 150 bytes for each.
    """
    counts: Counter[str] = Counter()
    for line in read_lines(text, mark=NO_MARK):
        counts.update(line.split())
    write_counts(output, ((word, counts[word]) for word in sorted(counts)))


def added_counts(paths: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Yield each word of several tables of :func:`count_words` and the sum of its counts.

    A UserError names the line of a file that is no such table.
    """
    tables = [read_counts(path) for path in paths]
    for word, entries in groupby(merge(*tables), itemgetter(0)):
        yield word, sum(times for _, times in entries)
