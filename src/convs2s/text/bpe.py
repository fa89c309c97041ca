"""Byte pair encoding by subword-nmt: learn merges from word counts, split words, join pieces.

Sennrich, Haddow and Birch (2016). Words and pieces are separated by single spaces; ``@@`` ends a
piece that the next one continues.
"""

import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import redirect_stderr
from pathlib import Path

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from convs2s.errors import UserError
from convs2s.files import read_lines

_JOINT = re.compile("@@( |$)")
_VERSION = "#version: 0.2\n"
# Words whose pieces are remembered, about 200 bytes each; a corpus may have any number of types.
_CACHED_WORDS = 500_000


def count_words(paths: Iterable[str | Path]) -> Counter[str]:
    """Count the words of tokenized files; one path for separate codes, both sides for joint ones.

    Raises:
        UserError: a file is missing or not UTF-8.
    """
    counts: Counter[str] = Counter()
    for path in paths:
        for line in read_lines(path):
            counts.update(line.split())
    return counts


def learn_codes(word_counts: Mapping[str, int], merges: int) -> str:
    """Learn merge operations; the same counts give the same codes.

    Args:
        word_counts: words with their frequencies, the sum of both languages for joint codes.
        merges: the most merges to learn; fewer where no pair of pieces occurs twice.

    Returns:
        The codes as text in subword-nmt's format: a version line, then a merge per line.

    Raises:
        UserError: there is no word.
    """
    if not word_counts:
        raise UserError("BPE codes cannot be learnt: the training text holds no word")
    if all(len(word) == 1 for word in word_counts):
        return _VERSION  # nothing to merge, which subword-nmt does not foresee
    lines = [f"{word} {count}\n" for word, count in sorted(word_counts.items())]
    codes = io.StringIO()
    with redirect_stderr(io.StringIO()):  # its progress bar and remarks
        learn_bpe(lines, codes, merges, is_dict=True)
    return codes.getvalue()


class Bpe:
    """Splits words by learnt codes; remembers the words it has seen."""

    def __init__(
        self,
        codes: str,
        vocabulary: Collection[str] | None = None,
        glossaries: Iterable[str] = (),
        *,
        merges: int | None = None,
    ) -> None:
        """Read the codes.

        Args:
            codes: text as :func:`learn_codes` returns it.
            vocabulary: the pieces to produce, written as in the output (``@@`` included); merges
                that lead to any other piece are undone. None: all pieces.
            glossaries: regular expressions; what matches stays one piece.
            merges: use the first so many merges only.

        Raises:
            UserError: the codes are not in subword-nmt's format, or the vocabulary is empty.
        """
        learnt = _check(codes)
        if vocabulary is not None and not vocabulary:
            raise UserError("no BPE piece is frequent enough: lower the vocabulary's threshold")
        self._bpe = BPE(
            io.StringIO(codes),
            merges=learnt if merges is None else min(merges, learnt),
            vocab=vocabulary,
            glossaries=list(glossaries),
        )
        self._pieces: dict[str, str] = {}

    def split(self, tokens: str) -> str:
        """Return the pieces of words that are joined by spaces; outer blanks stay."""
        if tokens.strip("\r\n ") != tokens:
            return str(self._bpe.process_line(tokens))
        known = self._pieces
        return " ".join([known.get(w) or self._split(w) for w in tokens.split(" ") if w])

    def _split(self, word: str) -> str:
        if len(self._pieces) >= _CACHED_WORDS:
            self._pieces.clear()
            self._bpe.cache.clear()
        pieces = self._pieces[word] = " ".join(self._bpe.segment_tokens([word]))
        return pieces


def join(pieces: str) -> str:
    """Return the words of pieces that are joined by spaces."""
    return _JOINT.sub("", pieces)


def count_pieces(word_counts: Mapping[str, int], bpe: Bpe) -> Counter[str]:
    """Count the pieces that a text with these word counts is split into.

    The pieces of a language that are frequent enough are the vocabulary for :class:`Bpe`
    (subword-nmt's ``learn-joint-bpe-and-vocab`` and ``--vocabulary-threshold``).
    """
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for piece in bpe.split(word).split(" "):
            counts[piece] += count
    return counts


def _check(codes: str) -> int:
    """Return the number of merges; refuse codes on which subword-nmt would end the process."""
    lines = codes.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        if len(line.strip("\r\n ").split(" ")) != 2:
            raise UserError(
                f"BPE codes, line {number}: expected two pieces and a space between them, "
                f"found '{line[:80]}': learn the codes again"
            )
    return len(lines) - lines[0].startswith("#version:")
