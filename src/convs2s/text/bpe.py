"""Byte pair encoding (Sennrich, Haddow and Birch, 2016) with the library subword-nmt.

The functions learn merges from word counts, split words into tokens and join tokens to words. Words
and tokens are separated by single spaces. A token that does not end its word ends in ``@@``.
"""

import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import redirect_stderr
from functools import lru_cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped]
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from convs2s.errors import UserError
from convs2s.files.limits import GLOSSARY_SECONDS, LARGEST_GLOSSARIES
from convs2s.files.text import read_lines
from convs2s.text.reserved_words import RESERVED_WORDS

# The mark of a token that does not end its word, with the space after it.
_JOINT = re.compile("@@( |$)")
# The first line of codes may state a version.
_MARK = "#version:"
_VERSION = f"{_MARK} 0.2\n"
_STATED_VERSION = re.compile(rf"{_MARK} 0\.[12][ \r]*")
# Number of words whose tokens are cached, about 300 bytes each. The cache is bounded because a
# corpus may have any number of distinct words.
_CACHED_WORDS = 1 << 16
# The end of a word in the lines of the codes.
_ENDS_WORD = "</w>"
# Share of a vocabulary's types that its codes need not be able to make. Such types are words that
# glossaries keep whole, and types that only fill up the vocabulary of an imported model.
_TOLERATED_SHARE = 0.1


def learn_codes(word_counts: Iterable[tuple[str, int]], merges: int) -> str:
    """Learn BPE codes from (word, count) pairs, and return them in subword-nmt's format.

    The codes are a version line and then one merge per line. There are ``merges`` lines of merges,
    or fewer if no pair of tokens is left that occurs twice. The order of the pairs does not matter.
    For joint codes, ``word_counts`` has the sum of the counts in both languages. Reserved words are
    ignored.

    Raises:
        UserError: there is no word to learn from.
    """
    counts = [pair for pair in word_counts if pair[0] not in RESERVED_WORDS]
    if not counts:
        raise UserError(
            "BPE codes cannot be learned: the training text holds no word. corpus/counts.txt says "
            "why its pairs were dropped; loosen `clean`, or give more text"
        )
    if all(len(word) == 1 for word, _ in counts):
        # There is nothing to merge, and subword-nmt fails on such a text.
        return _VERSION
    lines = (f"{word} {count}\n" for word, count in counts)
    codes = io.StringIO()
    # Hide subword-nmt's progress bar and its remarks.
    with redirect_stderr(io.StringIO()):
        learn_bpe(lines, codes, merges, is_dict=True)
    return codes.getvalue()


class Glossaries:
    """Patterns of words that BPE does not split, as in subword-nmt, with limits on size and time.

    The patterns may come from a model file that is not trusted. A pattern with repetitions inside
    repetitions can take Python's ``re`` practically forever on a word of thirty letters. The
    library ``regex`` is used because it has a timeout.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns.

        Raises:
            UserError: a pattern is not a regular expression, or the patterns are too large.
        """
        self._patterns: list[Any] = []
        size = 0.0
        for text in patterns:
            size += len(text) * _repetitions(text)
            if size > LARGEST_GLOSSARIES:
                raise UserError(
                    f"glossaries: {text[:80]!r} is too large: the characters of all patterns, each "
                    f"times its counts in braces, may be at most {LARGEST_GLOSSARIES:,}: write "
                    "smaller counts, and no comments"
                )
            try:
                self._patterns.append(regex.compile(text))
            except (regex.error, RecursionError) as error:
                raise UserError(
                    f"glossaries: {text[:80]!r} is not a regular expression: {error}"
                ) from None

    def match(self, word: str) -> bool:
        """Return whether any pattern matches the whole word.

        Raises:
            UserError: a pattern takes longer than ``GLOSSARY_SECONDS``.
        """
        whole = [(0, len(word))]
        return any(_spans(pattern, word) == whole for pattern in self._patterns)

    def isolate(self, word: str) -> list[str]:
        """Cut a word around each match of a pattern, and return its parts in order.

        The parts joined are the word. No part is empty.

        Raises:
            UserError: a pattern takes longer than ``GLOSSARY_SECONDS``.
        """
        parts = [word]
        for pattern in self._patterns:
            pieces = []
            for part in parts:
                # The positions at which the part is cut, and its two ends.
                cuts = [0, len(part)]
                for span in _spans(pattern, part):
                    cuts += span
                # A pattern with the flag ``(?r)`` finds the last match first.
                cuts.sort()
                pieces += [
                    part[start:end] for start, end in pairwise(cuts) if start < end
                ]
            parts = pieces
        return parts


def _repetitions(pattern: str) -> float:
    """Return an upper bound on how many copies of a character the compiled pattern contains.

    The library ``regex`` compiles the expression before ``{n}`` or ``{n,m}`` n times. As such
    repetitions can be nested, the bound is the product of all counts n. With the flag ``(?x)``, a
    count may contain blanks, which are removed here. It may also contain comments, for which the
    bound is infinite.
    """
    if "#" in pattern and re.search(r"\(\?\w*x", pattern):
        return inf
    product = 1.0
    for digits in re.findall(r"\{([0-9\s]+)", pattern):
        count = re.sub(r"\s", "", digits)
        product *= max(1.0, float(count or 1))
    return product


def _spans(pattern: Any, text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each match of a compiled pattern in a text.

    If the pattern matches the whole text, this is the only match.

    Raises:
        UserError: the search takes longer than ``GLOSSARY_SECONDS``.
    """
    try:
        if pattern.fullmatch(text, timeout=GLOSSARY_SECONDS):
            return [(0, len(text))]
        matches = pattern.finditer(text, timeout=GLOSSARY_SECONDS)
        return [match.span() for match in matches]
    except TimeoutError:
        raise UserError(
            f"glossaries: {pattern.pattern[:80]!r} takes more than {GLOSSARY_SECONDS:g} s on "
            f"{text[:40]!r}: write it without repetitions inside repetitions"
        ) from None


class Bpe:
    """Splits words by BPE codes. `split` caches the tokens of the words that were used last."""

    def __init__(
        self,
        codes: str,
        vocabulary: Collection[str] | None = None,
        glossaries: Iterable[str] = (),
    ) -> None:
        """Read codes in the format of `learn_codes`.

        Args:
            codes: The text of the codes.
            vocabulary: Tokens as in the output, with ``@@``. Merges that make any other token are
                undone. None allows all tokens.
            glossaries: Regular expressions of words, or parts of words, that are kept whole.

        Raises:
            UserError: the codes have another format, the vocabulary is empty, or a glossary is not
                a valid pattern.
        """
        check_codes(codes)
        if vocabulary is not None and not vocabulary:
            raise UserError(
                "no BPE token is frequent enough: lower the vocabulary's threshold"
            )
        known = None if vocabulary is None else set(vocabulary)
        # The number of merges is passed because subword-nmt otherwise ends the process if the codes
        # have no merges.
        self._bpe = BPE(io.StringIO(codes), len(merges_of(codes)), vocab=known)
        # subword-nmt gets no glossaries, because its own search for them has no time limit.
        self._glossaries = Glossaries(glossaries)
        self._cached_split = lru_cache(_CACHED_WORDS)(self._split_word)

    def split(self, words: str) -> str:
        """Split each word of a line, and return the tokens joined by single spaces."""
        inner = words.strip("\r\n ")
        return " ".join([self._cached_split(word) for word in inner.split(" ") if word])

    def _split_word(self, word: str) -> str:
        return " ".join(self.tokens(word))

    def tokens(self, word: str) -> list[str]:
        """Return the tokens of one word without caching them. A reserved word is one token."""
        if word in RESERVED_WORDS:
            return [word]
        # subword-nmt's own cache grows without limit.
        self._bpe.cache.clear()
        tokens: list[str] = []
        for part in self._glossaries.isolate(word):
            if tokens:
                # The word goes on after its last token so far.
                tokens[-1] += "@@"
            if self._glossaries.match(part):
                tokens.append(part)
            else:
                tokens += self._bpe.segment_tokens([part])
        return tokens


def read_codes(path: Path) -> str:
    """Read the codes of a file in the format of `learn_codes`.

    Raises:
        UserError: the file cannot be read, or a line has another format. The message names the
            line.
    """
    codes = "".join(f"{line}\n" for line in read_lines(path))
    check_codes(codes, f"{path}:")
    return codes


def join(tokens: str) -> str:
    """Join a line of tokens to words."""
    return _JOINT.sub("", tokens)


def count_tokens(word_counts: Iterable[tuple[str, int]], bpe: Bpe) -> Counter[str]:
    """Count the tokens of a text, given how often each of its words occurs.

    The frequent tokens can serve as the ``vocabulary`` of another `Bpe` (subword-nmt's
    ``--vocabulary-threshold``).
    """
    counts: Counter[str] = Counter()
    for word, count in word_counts:
        for token in bpe.tokens(word):
            counts[token] += count
    return counts


def merges_of(codes: str) -> list[str]:
    """Return the merges of codes, each as two tokens and a space between them.

    Codes may begin with a version line, which is left out.
    """
    lines = codes.removesuffix("\n").split("\n")
    if lines[0].startswith(_MARK):
        lines = lines[1:]
    return [line.strip("\r\n ") for line in lines]


def check_codes(codes: str, place: str = "BPE codes, line ") -> None:
    """Check the format of codes.

    The check comes first because subword-nmt ends the process if it meets a line that it cannot
    read.

    Raises:
        UserError: a line has another format. The message begins with ``place``, followed by the
            number of the line.
    """
    lines = codes.removesuffix("\n").split("\n")
    first = lines[0]
    if first.startswith(_MARK) and not _STATED_VERSION.fullmatch(first):
        raise UserError(
            f"{place}1: expected '{_MARK} 0.1' or '{_VERSION.strip()}', found {first[:80]!r}"
        )
    # A version line consists of two words as well.
    for number, line in enumerate(lines, start=1):
        if len(line.strip("\r\n ").split(" ")) != 2:
            raise UserError(
                f"{place}{number}: expected two tokens and a space between them, "
                f"found {line[:80]!r}; learn the codes again"
            )


def types_of_other_codes(codes: str, types: Sequence[str]) -> str | None:
    """Return how many types of a vocabulary the codes cannot make, such as "310 of 1,200".

    Return None if they can make all of them but a few, so that the codes belong to the vocabulary.
    The test is needed because a model file contains the source side's codes only, and the target
    side may have been split by other codes. Types of a single character need no merge and are not
    counted.
    """
    made_tokens = set()
    for merge in merges_of(codes):
        merged = merge.replace(" ", "")
        if merged.endswith(_ENDS_WORD):
            made_tokens.add(merged.removesuffix(_ENDS_WORD))
        else:
            made_tokens.add(f"{merged}@@")
    merged_types = [token for token in types if len(token.removesuffix("@@")) > 1]
    not_made = sum(token not in made_tokens for token in merged_types)
    if not_made <= _TOLERATED_SHARE * len(merged_types):
        return None
    return f"{not_made:,} of {len(merged_types):,}"
