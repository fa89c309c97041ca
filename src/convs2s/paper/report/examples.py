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
    read_translations,
    spread,
    with_replacements,
)

_SPREAD = 4
_REPLACED = 4


@dataclass(frozen=True)
class ShownWord:
    """A word of a translation as it is printed, and what it stands for where it was unknown."""

    text: str
    instead: str | None = None  # the source word whose unknown translation it replaces
    by: str | None = None  # dictionary or copied


def examples(entries: Iterable[LedgerEntry], present: Collection[Path]) -> list[dict[str, object]]:
    """Return examples of each file of translations; the first entry resting on it names the run.

    Beside the lines of `shown_places` they say how many lines the test set has, and how many of
    them a replaced word.
    """
    chosen: dict[Path, dict[str, object]] = {}
    for entry in entries:
        rests_on = [path for path in map(Path, entry.sha256) if path in present]
        texts = [path for path in rests_on if path.suffix != ".jsonl"]
        for path in rests_on:
            if entry.run.testset is None or path.suffix != ".jsonl" or path in chosen:
                continue
            system = read_translations(path)
            references = list(read_lines(texts[0])) if texts else []
            replaced = [place for place, line in enumerate(system) if line.replacements]
            shown = []
            for place in shown_places(system, replaced):
                line = system[place]
                reference = references[place] if references else None
                shown.append({"decoded": line, "words": shown_words(line), "reference": reference})
            numbers = {"replaced": len(replaced), "lines": len(system)}
            chosen[path] = {"run": entry.run, "shown": shown, **numbers}
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
        text = with_replacements(word, iter(taken))
        words.append(ShownWord(text, last.source_word, last.by) if last else ShownWord(word))
    return tuple(words)
