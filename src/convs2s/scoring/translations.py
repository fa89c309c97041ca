"""The decoder's JSON lines, read back: one translation a line, in the test set's order."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines

UNKNOWN_WORD = "<unk>"
"""How the decoder writes an unknown word that nothing has replaced."""


@dataclass(frozen=True)
class ReplacedWord:
    """An unknown word of the output and what stands in its place (section 4.3).

    Attributes:
        source_word: the source word with the most attention.
        word: the word that took the place.
        by: whether the alignment dictionary gave it or the source word was copied.
    """

    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


def in_place(text: str, replacements: Iterator[ReplacedWord], form: str = "{}") -> str:
    """Return a text in which each unknown word is the next replacement, while there are any.

    Args:
        text: words before replacement.
        replacements: in the order of the text; a copied word may itself be written ``<unk>``.
        form: how each is written.
    """

    def next_one(unknown: re.Match[str]) -> str:
        item = next(replacements, None)
        return unknown[0] if item is None else form.format(item.word)

    return re.sub(re.escape(UNKNOWN_WORD), next_one, text)


@dataclass(frozen=True)
class DecodedLine:
    """One sentence as the decoder leaves it; ``before`` is with its unknown words."""

    source: str
    text: str
    words: list[str]
    text_before: str
    words_before: list[str]
    replacements: list[ReplacedWord]


@dataclass(frozen=True)
class _Arithmetic:
    """What a line says of how it was computed."""

    precision: Literal["fp32", "bf16", "int8"]


def read_translations(path: Path) -> list[DecodedLine]:
    """Read the decoder's output.

    Raises:
        UserError: the file is missing, a line is no translation, or the lines are not numbered
            1, 2, 3 and so on; the message names the file and the line.
    """
    return [_parse(line, path, number) for number, line in enumerate(read_lines(path), start=1)]


def read_precision(path: Path) -> str:
    """Return the precision that the decoder's output was computed in, as its first line says.

    Raises:
        UserError: the file is missing, or its first line is no translation.
    """
    expected = "no translation of this program's decoder; decode the test set again"
    with failures_of_file(f"{path}:1", expected):
        return TypeAdapter(_Arithmetic).validate_json(next(read_lines(path), "")).precision


def _parse(line: str, path: Path, number: int) -> DecodedLine:
    try:
        found, decoded = _decoded_line(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}:{number}: no translation of this program's decoder ({error!r}); "
            "decode the test set again"
        ) from None
    if found != number:
        raise UserError(
            f"{path}:{number}: holds the translation of line {found} where line {number} was "
            "expected: the file is cut or out of order; decode the test set again"
        )
    return decoded


def _decoded_line(record: dict[str, Any]) -> tuple[int, DecodedLine]:
    """Return the number of a line and what was decoded."""
    return record["line"], DecodedLine(
        source=_text(record["source"]),
        text=_text(record["text"]),
        words=_words(record["words"]),
        text_before=_text(record["text_before"]),
        words_before=_words(record["words_before"]),
        replacements=[
            ReplacedWord(_text(item["source_word"]), _text(item["word"]), _by(item["by"]))
            for item in record["replacements"]
        ],
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text was expected")
    value.encode()  # no half of a surrogate pair, which no output can hold
    return value


def _words(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("a list was expected")
    return [_text(word) for word in value]


def _by(value: object) -> Literal["dictionary", "copied"]:
    if value not in ("dictionary", "copied"):
        raise ValueError("expected dictionary or copied")
    return "dictionary" if value == "dictionary" else "copied"
