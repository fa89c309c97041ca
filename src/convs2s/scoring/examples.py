"""A few translations to look at: a score alone hides what a model does wrong."""

from collections.abc import Iterator
from pathlib import Path

from convs2s.files.text import write_lines
from convs2s.scoring.evaluation import read_reference
from convs2s.scoring.translations import DecodedLine, in_place, read_translations

SHOWN = 5
"""Sentences to look at, or all of fewer."""


def write_examples(translations: Path, reference: Path, output: Path) -> None:
    """Write sources, translations and references of some sentences of a test set.

    The sentences are the middles of ``SHOWN`` equal parts of the test set, so that every run and
    model shows the same ones. The first other sentence with a replaced unknown word comes last.

    Args:
        translations: the decoder's JSON lines.
        reference: the target side as published.
        output: the text file.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    system = read_translations(translations)
    references = read_reference(reference, translations, len(system))
    chosen = spread(len(system), SHOWN)
    replaced = [i for i, item in enumerate(system) if item.replacements and i not in chosen]
    chosen += replaced[:1]
    lines = (line for i in chosen for line in _example(i + 1, system[i], references[i]))
    write_lines(output, lines)


def spread(total: int, count: int) -> list[int]:
    """Return the middles of ``count`` equal parts of ``range(total)``."""
    count = min(count, total)
    return [(2 * part + 1) * total // (2 * count) for part in range(count)]


def _example(number: int, translation: DecodedLine, reference: str) -> Iterator[str]:
    yield f"line {number}"
    yield f"  source       {translation.source}"
    yield f"  translation  {translation.text}"
    yield f"  reference    {reference}"
    if translation.replacements:
        yield f"  in words     {_mark(translation)}"
        yield f"  replaced     {'; '.join(_explain(translation))}"
    yield ""


def _mark(translation: DecodedLine) -> str:
    """Put the words that stand where the model said that it does not know into brackets."""
    return in_place(" ".join(translation.words_before), iter(translation.replacements), "[{}]")


def _explain(translation: DecodedLine) -> Iterator[str]:
    for item in translation.replacements:
        if item.by == "dictionary":
            yield f"[{item.word}] is the dictionary's word for {item.source_word}"
        else:
            yield f"[{item.word}] is copied from the source"
