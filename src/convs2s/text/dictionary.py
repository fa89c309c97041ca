"""Build the dictionary and the candidate table from a word-aligned corpus.

``dictionary.tsv`` gives each source word the target word that is aligned to it most often. It
serves to replace ``<unk>`` in translations (Gehring et al. 2017, "Evaluation"; the released code
counts grow-diag-final-and links). ``candidates.tsv`` gives each source word the target words that
vocabulary selection allows in the translation of a sentence with this word (L'Hostis et al. 2016).
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
"""Maximum number of target words per source word in ``candidates.tsv``, as in the released code."""

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
    """Count the links between words, and write the tables ``dictionary`` and ``candidates``.

    Both tables have a row for each source word that has a link, the most frequent source word
    first. Target words are ordered by falling count, and words with equal counts by code point.
    In a row of the dictionary, ``count`` says how often the two words are aligned, and
    ``source_count`` how often the source word occurs, aligned or not. Links from or to a reserved
    word are not counted, as ``<unk>`` in the text may stand for any word.

    Raises:
        UserError: ``links`` is not what `align_words` wrote for this text. It has another number of
            lines, or a position beyond the end of a sentence.
    """
    # Source word -> number of its occurrences.
    frequencies: Counter[str] = Counter()
    aligned: defaultdict[str, Counter[str]] = defaultdict(Counter)
    problem = "the links are not those of this text: align the corpus again"
    pairs = read_line_pairs(source, target, mark=NO_MARK)
    pairs_and_links = zip_longest(pairs, read_links(links))
    for number, (pair, pair_links) in enumerate(pairs_and_links, start=1):
        if pair is None or pair_links is None:
            raise UserError(f"{links}:{number}: {problem}")
        source_words = pair[0].split()
        target_words = pair[1].split()
        frequencies.update(source_words)
        for i, j in pair_links:
            if i >= len(source_words) or j >= len(target_words):
                raise UserError(f"{links}:{number}: {problem}")
            if RESERVED_WORDS.isdisjoint((source_words[i], target_words[j])):
                aligned[source_words[i]][target_words[j]] += 1
    dictionary_rows = [_DICTIONARY_HEADER]
    candidate_rows = [_CANDIDATES_HEADER]
    for source_word in sorted(aligned, key=lambda word: (-frequencies[word], word)):
        counts = aligned[source_word]
        targets = nsmallest(
            MOST_CANDIDATES, counts, key=lambda word: (-counts[word], word)
        )
        best = targets[0]
        frequency = frequencies[source_word]
        dictionary_rows.append(f"{source_word}\t{best}\t{counts[best]}\t{frequency}")
        candidate_rows.append(f"{source_word}\t{' '.join(targets)}")
    write_lines(dictionary, dictionary_rows)
    write_lines(candidates, candidate_rows)


def read_dictionary(path: str | Path) -> dict[str, str]:
    """Return the target word of each source word in a ``dictionary.tsv``."""
    return {
        source: target for source, target, *_ in read_rows(path, _DICTIONARY_HEADER)
    }


def read_candidates(path: str | Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each source word of a ``candidates.tsv`` with its target words, the best word first."""
    for word, targets in read_rows(path, _CANDIDATES_HEADER):
        yield word, targets.split(" ")
