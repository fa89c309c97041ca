"""Read the decoder's JSON lines: one translation on each line, in the order of the test set."""

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

# What the decoder writes for an unknown word that is not replaced.
UNKNOWN_WORD = "<unk>"
SHOWN = 5  # evenly spaced sentences in a file of examples


@dataclass(frozen=True)
class ReplacedWord:
    """The replacement of an unknown word, found by the source word with the most attention.

    It is the source word's entry in the dictionary, or a copy of the source word (section 4.3).
    """

    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


@dataclass(frozen=True)
class DecodedLine:
    """One decoded sentence, as on one line of the decoder's output.

    ``line`` counts from 1. The fields whose names end in ``_before`` are from before the
    replacement of unknown words, and still contain ``<unk>``.
    """

    line: int
    source: str
    text: str
    words: list[str]
    text_before: str
    words_before: list[str]
    replacements: list[ReplacedWord]


_LINE = TypeAdapter(DecodedLine)


def read_translations(path: Path) -> list[DecodedLine]:
    """Return the lines of the decoder's output.

    Raises:
        UserError: a line is malformed or out of order; the message names it.
    """
    translations: list[DecodedLine] = []
    problem = "not a translation by this program's decoder; decode the test set again"
    for expected, line in enumerate(read_lines(path), start=1):
        location = f"{path}:{expected}"
        with failures_of_file(location, problem):
            translation = _LINE.validate_json(line, strict=True)
        if translation.line != expected:
            raise UserError(
                f"{location}: expected the translation of line {expected}, found that of line "
                f"{translation.line}; the file is truncated or out of order; decode the test set "
                "again"
            )
        translations.append(translation)
    return translations


def read_reference(
    reference: Path,
    translations: Path,
    system: Sequence[DecodedLine],
) -> list[str]:
    """Return the lines of a reference file, one for each line of the system's output.

    Raises:
        UserError: the reference has a different number of lines; the message names both files.
    """
    lines = [line.removesuffix("\r") for line in read_lines(reference)]
    check_lines(system, [lines], translations, [reference])
    return lines


def with_replacements(
    text: str,
    replacements: Iterator[ReplacedWord],
    form: str = "{}",
) -> str:
    """Return a text in which each ``<unk>`` is replaced by the next of ``replacements``.

    If there are fewer replacements, the remaining ``<unk>`` stay as they are. ``form`` is the
    format string for a replacement's word. A copied word may itself be ``<unk>`` and must not be
    replaced again, so the text is searched only once.
    """

    def next_word(unknown: re.Match[str]) -> str:
        replacement = next(replacements, None)
        return unknown[0] if replacement is None else form.format(replacement.word)

    return re.sub(re.escape(UNKNOWN_WORD), next_word, text)


def write_examples(
    translations: Path,
    reference: Path,
    output: Path,
) -> None:
    """Write the sources, translations and references of a few sentences of a test set.

    The examples show a model's errors, which a score alone hides. The sentences are the middles of
    ``SHOWN`` equal parts of the test set, so that the files of all runs and models show the same
    ones. The first other sentence with a replaced unknown word is added at the end.
    """
    system = read_translations(translations)
    references = read_reference(reference, translations, system)
    chosen = spread(len(system), SHOWN)
    for index, translation in enumerate(system):
        if translation.replacements and index not in chosen:
            chosen.append(index)
            break
    shown = []
    for index in chosen:
        line = system[index]
        words_before = " ".join(line.words_before)
        marked = with_replacements(words_before, iter(line.replacements), form="[{}]")
        shown.append((line, references[index], marked))
    write_text(output, render_text("examples.txt.j2", shown=shown))


def spread(total: int, count: int) -> list[int]:
    """Return the middles of ``count`` equal parts of ``range(total)``, in ascending order.

    If ``total`` is at most ``count``, they are all of ``range(total)``.
    """
    count = min(count, total)
    return [(2 * part + 1) * total // (2 * count) for part in range(count)]
