"""Tables counted from word alignments, for unknown words and for vocabulary selection.

The dictionary gives each source word the target word that is aligned to it most often (Gehring et
al. 2017, "Evaluation"; the released code counts grow-diag-final-and links). The candidates are the
target words that vocabulary selection offers for it (L'Hostis et al. 2016).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import nsmallest
from itertools import zip_longest
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import NO_MARK, read_line_pairs, read_rows, write_lines
from convs2s.text.links import read_links
from convs2s.text.reserved_words import RESERVED_WORDS

MOST_CANDIDATES = 100
"""Most target words per source word in ``candidates.tsv``, as in the released code."""

_DICTIONARY_HEADER = "source\ttarget\tcount\tsource_count"
_CANDIDATES_HEADER = "source\ttargets"


def build_dictionary(
    *,
    source: str | Path,
    target: str | Path,
    links: str | Path,
    dictionary: str | Path,
    candidates: str | Path,
) -> None:
    """Count aligned words and write both tables, the most frequent source words first.

    Reserved words are in neither: ``<unk>`` of the text translates no word, and none is it. Of
    target words of the same count, the smallest by code point comes first. The dictionary's counts
    are of the pair of words and of the source word, aligned or not. Links that `align_words` did
    not write for this very text are refused with a UserError.
    """
    frequencies: Counter[str] = Counter()
    aligned: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def another_text(number: int) -> UserError:
        return UserError(
            f"{links}:{number}: the links are not those of this text: align the corpus again"
        )

    pairs = read_line_pairs(source, target, mark=NO_MARK)
    for number, (pair, linked) in enumerate(zip_longest(pairs, read_links(links)), start=1):
        if pair is None or linked is None:
            raise another_text(number)
        words = pair[0].split()
        others = pair[1].split()
        frequencies.update(words)
        for i, j in linked:
            if i >= len(words) or j >= len(others):
                raise another_text(number)
            if RESERVED_WORDS.isdisjoint((words[i], others[j])):
                aligned[words[i]][others[j]] += 1
    entries = [_DICTIONARY_HEADER]
    offers = [_CANDIDATES_HEADER]
    for source_word in sorted(aligned, key=lambda word: (-frequencies[word], word)):
        counts = aligned[source_word]
        targets = nsmallest(MOST_CANDIDATES, counts, key=lambda word: (-counts[word], word))
        best = targets[0]
        frequency = frequencies[source_word]
        entries.append(f"{source_word}\t{best}\t{counts[best]}\t{frequency}")
        offers.append(f"{source_word}\t{' '.join(targets)}")
    write_lines(dictionary, entries)
    write_lines(candidates, offers)


def read_dictionary(path: str | Path) -> dict[str, str]:
    """Return the target word of each source word in a ``dictionary.tsv``."""
    return {source: target for source, target, *_ in read_rows(path, _DICTIONARY_HEADER)}


def read_candidates(path: str | Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each source word of a ``candidates.tsv`` with its target words, the best first."""
    for word, targets in read_rows(path, _CANDIDATES_HEADER):
        yield word, targets.split(" ")
