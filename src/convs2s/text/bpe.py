"""Byte pair encoding by subword-nmt: learn merges from word counts, split words, join tokens.

Sennrich, Haddow and Birch (2016). Words and tokens are separated by single spaces; ``@@`` ends a
token that the next one continues.
"""

import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path

import regex  # type: ignore[import-untyped]
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from convs2s.errors import UserError
from convs2s.files.limits import GLOSSARY_SECONDS, LARGEST_GLOSSARIES
from convs2s.files.text import read_lines
from convs2s.text.reserved_words import RESERVED_WORDS

_JOINT = re.compile("@@( |$)")
_MARK = "#version:"
_VERSION = f"{_MARK} 0.2\n"
_STATED_VERSION = re.compile(rf"{_MARK} 0\.[12][ \r]*")
# Words whose tokens are remembered, about 300 bytes each; a corpus may have any number of types.
_CACHED_WORDS = 1 << 16
_ENDS_WORD = "</w>"
_FEW = 0.1  # share of a vocabulary that no merge makes: glossaries, and what fills an imported one


def learn_codes(word_counts: Iterable[tuple[str, int]], merges: int) -> str:
    """Learn merge operations; the same counts in any order give the same codes.

    Words, but for reserved ones, come with their frequency, the sum of both languages for joint
    codes. The codes are text in subword-nmt's format: a version line, then a merge per line, fewer
    than ``merges`` where no pair of tokens occurs twice. No word at all is a UserError.
    """
    lines = []
    longest = 0
    for word, count in word_counts:
        if word not in RESERVED_WORDS:
            lines.append(f"{word} {count}\n")
            longest = max(longest, len(word))
    if not lines:
        raise UserError(
            "BPE codes cannot be learnt: the training text holds no word: corpus/counts.txt says "
            "where its pairs went; loosen clean, or give more text"
        )
    if longest == 1:
        return _VERSION  # nothing to merge, which subword-nmt does not foresee
    codes = io.StringIO()
    with redirect_stderr(io.StringIO()):  # its progress bar and remarks
        learn_bpe(lines, codes, merges, is_dict=True)
    return codes.getvalue()


class Glossaries:
    """Patterns of words that BPE leaves whole, as subword-nmt has them, searched within bounds.

    A pattern may come from a stranger's model file, and Python's own ``re`` can take longer than
    anybody lives for a word of thirty letters.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns; what is no regular expression, or too large, is a UserError."""
        self._patterns = []
        size = 0.0
        for text in patterns:
            size += len(text) * _repetitions(text)
            if size > LARGEST_GLOSSARIES:
                raise UserError(
                    f"glossaries: {text[:80]!r} is too large: all patterns' characters times their "
                    f"counts in braces are {LARGEST_GLOSSARIES:,} at most: write smaller counts, "
                    "and no comments"
                )
            try:
                self._patterns.append((text, regex.compile(text)))
            except (regex.error, RecursionError) as error:
                raise UserError(
                    f"glossaries: {text[:80]!r} is no regular expression: {error}"
                ) from None

    def match(self, word: str) -> bool:
        """Return whether a pattern matches a whole word; one that is too slow is a UserError."""
        for text, pattern in self._patterns:
            with _limited(text, word):
                if pattern.fullmatch(word, timeout=GLOSSARY_SECONDS):
                    return True
        return False

    def isolate(self, word: str) -> list[str]:
        """Return the parts of a word, in order: what a pattern matches is a part of its own."""
        parts = [word]
        for text, pattern in self._patterns:
            pieces = []
            for part in parts:
                cuts = [0, len(part)]
                with _limited(text, part):
                    if not pattern.fullmatch(part, timeout=GLOSSARY_SECONDS):
                        for match in pattern.finditer(part, timeout=GLOSSARY_SECONDS):
                            cuts += match.span()
                cuts.sort()  # ``(?r)`` finds the last match first
                pieces += [part[start:end] for start, end in pairwise(cuts) if start < end]
            parts = pieces
        return parts


def _repetitions(pattern: str) -> float:
    """Return a bound on how often the library compiles a character of a pattern.

    It writes what stands before ``{n}`` or ``{n,m}`` n times. Such counts may lie in each other, so
    the bound is their product. ``(?x)`` allows blanks between digits; comments there, too: inf.
    """
    if "#" in pattern and re.search(r"\(\?\w*x", pattern):
        return inf
    product = 1.0
    for digits in re.findall(r"\{([0-9\s]+)", pattern):
        count = re.sub(r"\s", "", digits)
        product *= max(1.0, float(count or 1))
    return product


@contextmanager
def _limited(pattern: str, word: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise UserError(
            f"glossaries: {pattern[:80]!r} takes more than {GLOSSARY_SECONDS:g} s on "
            f"{word[:40]!r}: write it without repetitions inside repetitions"
        ) from None


class Bpe:
    """Splits words by learnt codes; remembers the words it has split last."""

    def __init__(
        self, codes: str, vocabulary: Collection[str] | None = None, glossaries: Iterable[str] = ()
    ) -> None:
        """Read codes; any other format is a UserError.

        Merges that lead to a token outside of the ``vocabulary``, which is written as in the output
        (``@@`` included), are undone. ``glossaries`` are regular expressions of tokens.
        """
        merges = check_codes(codes)
        if vocabulary is not None and not vocabulary:
            raise UserError("no BPE token is frequent enough: lower the vocabulary's threshold")
        known = None if vocabulary is None else set(vocabulary)
        self._bpe = BPE(io.StringIO(codes), merges, vocab=known)
        # Its own search for glossaries has no limit of time.
        bounded = Glossaries(glossaries)
        self._bpe.glossaries_regex = bounded
        self._bpe._isolate_glossaries = bounded.isolate
        self._remembered_tokens = lru_cache(_CACHED_WORDS)(self.tokens)

    def split(self, words: str) -> str:
        """Return the tokens of words that are joined by spaces; outer blanks stay."""
        inner = words.strip("\r\n ")
        start = words.index(inner)
        end = start + len(inner)
        tokens: list[str] = []
        for word in inner.split(" "):
            if word:
                tokens += self._remembered_tokens(word)
        return words[:start] + " ".join(tokens) + words[end:]

    def tokens(self, word: str) -> list[str]:
        """Return the tokens of one word, which is not remembered; a reserved word is one token."""
        if word in RESERVED_WORDS:
            return [word]
        self._bpe.cache.clear()  # subword-nmt's own, which has no bound
        tokens: list[str] = self._bpe.segment_tokens([word])
        return tokens


def read_codes(path: Path) -> str:
    """Return the codes of a file, as `learn_codes` returned them; a UserError names a bad line."""
    codes = "".join(f"{line}\n" for line in read_lines(path))
    check_codes(codes, f"{path}:")
    return codes


def join(tokens: str) -> str:
    """Return the words of tokens that are joined by spaces."""
    return _JOINT.sub("", tokens)


def count_tokens(word_counts: Iterable[tuple[str, int]], bpe: Bpe) -> Counter[str]:
    """Count the tokens that a text with these word counts is split into.

    Frequent ones are the vocabulary for `Bpe` (subword-nmt's ``--vocabulary-threshold``).
    """
    counts: Counter[str] = Counter()
    for word, count in word_counts:
        for token in bpe.tokens(word):
            counts[token] += count
    return counts


def check_codes(codes: str, place: str = "BPE codes, line ") -> int:
    """Return the number of merges; refuse codes on which subword-nmt would end the process.

    The UserError begins with ``place``, up to the number of the line.
    """
    lines = codes.removesuffix("\n").split("\n")
    first = lines[0]
    has_version = first.startswith(_MARK)
    if has_version and not _STATED_VERSION.fullmatch(first):
        raise UserError(f"{place}1: expected '{_VERSION.strip()}' or such, found {first[:80]!r}")
    for number, line in enumerate(lines, start=1):
        if len(line.strip("\r\n ").split(" ")) != 2:
            raise UserError(
                f"{place}{number}: expected two tokens and a space between them, "
                f"found {line[:80]!r}: learn the codes again"
            )
    return len(lines) - 1 if has_version else len(lines)


def types_of_other_codes(codes: str, types: Sequence[str]) -> str | None:
    """Say how many types of a vocabulary the merges do not make, such as "310 of 1,200".

    A model file holds the codes of the source alone, which need not be the target's. None where the
    codes can have made the vocabulary, but for a few types.
    """
    tokens = set()
    for line in codes.splitlines()[1:]:
        merged = "".join(line.split())
        is_end = merged.endswith(_ENDS_WORD)
        tokens.add(merged.removesuffix(_ENDS_WORD) if is_end else f"{merged}@@")
    long = [token for token in types if len(token.removesuffix("@@")) > 1]
    strange = sum(token not in tokens for token in long)
    return f"{strange:,} of {len(long):,}" if strange > _FEW * len(long) else None
