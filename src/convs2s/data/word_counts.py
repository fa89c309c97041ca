"""How often each word of a corpus occurs: tables sorted by word, which are cheap to add up.

A table is written in bounded memory: counts are put aside from time to time, and added up line by
line, so that memory does not grow with the corpus.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.files.atomic import scratch_folder, writing
from convs2s.files.text import NO_MARK, read_lines

_TYPES_IN_MEMORY = 1 << 16  # types that are counted before they are put aside, about 100 bytes each
_TABLES_AT_ONCE = 64  # tables that are read at once, each an open file and about 1 MB


def count_words(*, text: Path, output: Path) -> None:
    """Write how often each word of a tokenized file occurs, sorted by code point."""
    with writing(output), scratch_folder(output.parent) as folder:
        tables, counts, numbers = list[Path](), Counter[str](), count()

        def put_aside(entries: Iterable[tuple[str, int]]) -> None:
            path = folder / f"{next(numbers)}.tsv"
            write_counts(path, entries)
            tables.append(path)

        for line in read_lines(text, mark=NO_MARK):
            counts.update(line.split())
            if len(counts) >= _TYPES_IN_MEMORY:
                put_aside(sorted(counts.items()))
                counts.clear()
            if len(tables) == _TABLES_AT_ONCE:
                put_aside(added_counts(tables))
                while len(tables) > 1:
                    tables.pop(0).unlink()
        put_aside(sorted(counts.items()))
        write_counts(output, added_counts(tables))


def added_counts(paths: Sequence[Path]) -> Iterator[tuple[str, int]]:
    """Yield each word of several tables of :func:`count_words` and the sum of its counts.

    A UserError names the line of a file that is no such table.
    """
    for word, entries in groupby(merge(*map(read_counts, paths)), itemgetter(0)):
        yield word, sum(times for _, times in entries)
