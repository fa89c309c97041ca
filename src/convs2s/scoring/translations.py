"""The decoder's JSON lines, read back: one translation a line, in the test set's order."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines, write_text
from convs2s.scoring.bleu import check_lines
from convs2s.scoring.reports.layout import render_text

UNKNOWN_WORD = "<unk>"  # how the decoder writes an unknown word that nothing has replaced
SHOWN = 5  # sentences that a file of examples shows


@dataclass(frozen=True)
class ReplacedWord:
    """An unknown word's replacement by the source word with the most attention (section 4.3)."""

    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


@dataclass(frozen=True)
class DecodedLine:
    """One sentence, numbered from 1, as the decoder leaves it; ``before`` has its unknown words."""

    line: int
    source: str
    text: str
    words: list[str]
    text_before: str
    words_before: list[str]
    replacements: list[ReplacedWord]


_LINE = TypeAdapter(DecodedLine)


def read_translations(path: Path) -> list[DecodedLine]:
    """Read the decoder's output; a UserError names a line that is malformed or out of order."""
    translations: list[DecodedLine] = []
    wrong = "no translation of this program's decoder; decode the test set again"
    for expected, line in enumerate(read_lines(path), start=1):
        place = f"{path}:{expected}"
        with failures_of_file(place, wrong):
            translation = _LINE.validate_json(line, strict=True)
        if translation.line != expected:
            raise UserError(
                f"{place}: holds the translation of line {translation.line} where line {expected} "
                "was expected: the file is cut or out of order; decode the test set again"
            )
        translations.append(translation)
    return translations


def read_reference(
    reference: Path,
    translations: Path,
    system: Sequence[DecodedLine],
) -> list[str]:
    """Read a reference of each line that was translated; any other number is a UserError."""
    lines = [line.removesuffix("\r") for line in read_lines(reference)]
    check_lines(system, [lines], translations, [reference])
    return lines


def in_place(
    text: str,
    replacements: Iterator[ReplacedWord],
    form: str = "{}",
) -> str:
    """Return a text in which each unknown word is the next replacement, while there are any.

    A copied word may itself be written ``<unk>``.
    """

    def next_word(unknown: re.Match[str]) -> str:
        item = next(replacements, None)
        return unknown[0] if item is None else form.format(item.word)

    return re.sub(re.escape(UNKNOWN_WORD), next_word, text)


def write_examples(
    translations: Path,
    reference: Path,
    output: Path,
) -> None:
    """Write sources, translations and references of some sentences of a test set.

    A score alone hides what a model does wrong. The sentences are the middles of ``SHOWN`` equal
    parts of the test set, so that every run and model shows the same ones. The first other sentence
    with a replaced unknown word comes last.
    """
    system = read_translations(translations)
    references = read_reference(reference, translations, system)
    chosen = spread(len(system), SHOWN)
    for place, translation in enumerate(system):
        if translation.replacements and place not in chosen:
            chosen.append(place)
            break
    shown = []
    for place in chosen:
        line = system[place]
        in_words = in_place(" ".join(line.words_before), iter(line.replacements), "[{}]")
        shown.append((line, references[place], in_words))
    write_text(output, render_text("examples.txt.j2", shown=shown))


def spread(total: int, count: int) -> list[int]:
    """Return the middles of ``count`` equal parts of ``range(total)``, or all of fewer."""
    count = min(count, total)
    return [(2 * part + 1) * total // (2 * count) for part in range(count)]
