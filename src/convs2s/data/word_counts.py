"""How often each word of a corpus occurs: tables sorted by word, which are cheap to add up.

A shard's table is written in bounded memory, and tables are added up line by line, some of them at
a time, so that neither memory nor the number of open files grows with the corpus.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.files.atomic import scratch_folder, writing
from convs2s.files.text import NO_MARK, read_lines

_TYPES_IN_MEMORY = 1 << 16  # types that are counted before they are put aside, about 100 bytes each

_TABLES_AT_ONCE = 64  # tables that are read at once, each an open file and about 1 MB


def count_words(*, text: Path, rows: range, output: Path) -> None:
    """Write how often each word of some lines of a tokenized file occurs, sorted by code point.

    The lines are counted from 0.
    """
    lines = islice(read_lines(text, rows.start, mark=NO_MARK), len(rows))
    with writing(output), scratch_folder(output.parent) as folder:
        aside = _Aside(folder)
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(line.split())
            if len(counts) >= _TYPES_IN_MEMORY:
                aside.add(sorted(counts.items()))
                counts.clear()
        aside.add(sorted(counts.items()))
        write_counts(output, added_counts(aside.tables))


def add_word_counts(*, tables: Sequence[Path], output: Path) -> None:
    """Write the sum of several tables of :func:`count_words`."""
    write_counts(output, added_counts(tables))


def added_counts(paths: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Yield each word of several tables of :func:`count_words` and the sum of its counts.

    A UserError names the line of a file that is no such table.
    """
    for word, entries in groupby(merge(*map(read_counts, paths)), itemgetter(0)):
        yield word, sum(count for _, count in entries)


class _Aside:
    """Tables that wait to be added up; as soon as a generation is full, it becomes one table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generations: list[list[Path]] = []

    @property
    def tables(self) -> list[Path]:
        """Those that hold everything that was added."""
        return [path for paths in self._generations for path in paths]

    def add(self, counts: Iterable[tuple[str, int]], generation: int = 0) -> None:
        """Put a sorted table aside, and join those of a generation once there are many."""
        if generation == len(self._generations):
            self._generations.append([])
        paths = self._generations[generation]
        paths.append(self._folder / f"{generation}.{len(paths)}.tsv")
        write_counts(paths[-1], counts)
        if len(paths) == _TABLES_AT_ONCE:
            self.add(added_counts(paths), generation + 1)
            for path in paths:
                path.unlink()
            paths.clear()
