"""Example translations, with what took the place of unknown words."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from convs2s.files.text import read_lines
from convs2s.paper.ledger import LedgerEntry
from convs2s.scoring.translations import (
    UNKNOWN_WORD,
    DecodedLine,
    in_place,
    read_translations,
    spread,
)

_SPREAD = 4
_REPLACED = 4


@dataclass(frozen=True)
class ShownWord:
    """A word of a translation as it is printed, and what it stands for where it was unknown."""

    text: str
    instead: str | None = None  # the source word whose unknown translation it replaces
    by: str | None = None  # dictionary or copied


@dataclass(frozen=True)
class ShownTranslation:
    """A translation of a line of a test set, with its words and the reference where it is there."""

    decoded: DecodedLine
    words: Sequence[ShownWord]
    reference: str | None


@dataclass(frozen=True)
class ExamplesOfRun:
    """A few translations of the run of a ledger's entry."""

    entry: LedgerEntry
    replaced: int  # how many lines of the test set have a replaced word
    lines: int  # how many lines it has
    shown: Sequence[ShownTranslation]  # those of `shown_places`


def examples(entries: Iterable[LedgerEntry], present: Collection[Path]) -> list[ExamplesOfRun]:
    """Return examples of each file of translations; the first entry resting on it names the run."""
    chosen: dict[Path, ExamplesOfRun] = {}
    for entry in entries:
        rests_on = [path for path in map(Path, entry.sha256) if path in present]
        texts = [path for path in rests_on if path.suffix != ".jsonl"]
        for path in rests_on:
            if entry.run.testset is None or path.suffix != ".jsonl" or path in chosen:
                continue
            system = read_translations(path)
            references = list(read_lines(texts[0])) if texts else []
            replaced = [place for place, line in enumerate(system) if line.replacements]
            shown = [
                ShownTranslation(
                    system[place],
                    shown_words(system[place]),
                    references[place] if references else None,
                )
                for place in shown_places(system, replaced)
            ]
            chosen[path] = ExamplesOfRun(entry, len(replaced), len(system), shown)
    return list(chosen.values())


def shown_places(system: Sequence[DecodedLine], replaced: Sequence[int]) -> list[int]:
    """Return which lines are shown: some of all, the longest source, and a few of ``replaced``.

    Sutskever et al. (2014, table 3) show long sentences, as a fixed vector has to hold them.
    """
    lengths = [len(line.source.split()) for line in system]
    places = {*spread(len(system), _SPREAD), lengths.index(max(lengths))}
    return sorted(places.union([place for place in replaced if place not in places][:_REPLACED]))


def shown_words(translation: DecodedLine) -> tuple[ShownWord, ...]:
    """Return the words before replacement, but each unknown one as what took its place."""
    replacements = iter(translation.replacements)  # in the order of the output
    words = []
    for word in translation.words_before:
        # A word of BPE pieces may hold several.
        taken = list(islice(replacements, word.count(UNKNOWN_WORD)))
        last = taken[-1] if taken else None
        text = in_place(word, iter(taken))
        words.append(ShownWord(text, last.source_word, last.by) if last else ShownWord(word))
    return tuple(words)
