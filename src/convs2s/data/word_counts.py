"""How often each word of a corpus occurs: tables sorted by word, which are cheap to add up.

A shard's table is written in bounded memory, and tables are added up line by line, so that nothing
here grows with the corpus.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.files import NO_MARK, read_lines
from convs2s.guards.writing import scratch_folder

# Types that are counted before they are put aside, about 100 bytes each.
_TYPES_IN_MEMORY = 1 << 16


def count_words(*, text: Path, rows: range, output: Path) -> None:
    """Write how often each word of some lines of a tokenized file occurs, sorted by code point.

    Args:
        text: one side of a corpus, in words.
        rows: the lines to count, from 0.
        output: the table to write.
    """
    lines = islice(read_lines(text, rows.start, mark=NO_MARK), len(rows))
    output.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(output.parent) as folder:
        aside: list[Path] = []
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(line.split())
            if len(counts) >= _TYPES_IN_MEMORY:
                aside.append(folder / f"{len(aside)}.tsv")
                write_counts(aside[-1], sorted(counts.items()))
                counts.clear()
        tables = [*map(read_counts, aside), iter(sorted(counts.items()))]
        write_counts(output, _added(tables))


def add_word_counts(*, tables: Sequence[Path], output: Path) -> None:
    """Write the sum of several tables of :func:`count_words`."""
    write_counts(output, added_counts(tables))


def added_counts(paths: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Yield each word of several tables of :func:`count_words` and the sum of its counts.

    Raises:
        UserError: a file is no such table; the message names the line.
    """
    return _added([read_counts(path) for path in paths])


def _added(tables: Sequence[Iterator[tuple[str, int]]]) -> Iterator[tuple[str, int]]:
    for word, entries in groupby(merge(*tables), itemgetter(0)):
        yield word, sum(count for _, count in entries)
