"""Example translations, with the words that replaced unknown words."""

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

_SPREAD = 4  # lines at equal distances over the test set
_REPLACED = 4  # further lines with a replaced word


@dataclass(frozen=True)
class ShownWord:
    """A word of a translation as the report prints it, and its origin if it was unknown."""

    text: str
    # The source word that the replacement was chosen for.
    source_word: str | None = None
    by: str | None = None  # how the word was replaced: "dictionary" or "copied"


def examples(
    entries: Iterable[LedgerEntry], present: Collection[Path]
) -> list[dict[str, object]]:
    """Return examples from each file of translations that entries were computed from.

    Only files in ``present`` are read. The examples from a file are a dictionary with these keys:

    - ``run``: the names of the run, from the first entry that was computed from the file.
    - ``shown``: the lines that `shown_lines` chooses, each with its words and its reference.
    - ``replaced``: the number of lines with a replaced word.
    - ``lines``: the number of lines of the test set.
    """
    chosen: dict[Path, dict[str, object]] = {}
    for entry in entries:
        if entry.run.testset is None:
            continue  # its numbers are not computed from translations
        # The files are translations (.jsonl) and references. Of several references, the report
        # shows the first.
        used = [path for path in map(Path, entry.sha256) if path in present]
        reference_files = [path for path in used if path.suffix != ".jsonl"]
        for path in used:
            if path.suffix != ".jsonl" or path in chosen:
                continue
            system = read_translations(path)
            references = list(read_lines(reference_files[0])) if reference_files else []
            replaced = [index for index, line in enumerate(system) if line.replacements]
            shown = []
            for index in shown_lines(system, replaced):
                line = system[index]
                reference = references[index] if references else None
                words = shown_words(line)
                shown.append({"decoded": line, "words": words, "reference": reference})
            chosen[path] = {
                "run": entry.run,
                "shown": shown,
                "replaced": len(replaced),
                "lines": len(system),
            }
    return list(chosen.values())


def shown_lines(system: Sequence[DecodedLine], replaced: Sequence[int]) -> list[int]:
    """Return the indices of the lines that the report shows, in rising order.

    They are `_SPREAD` lines at equal distances, the line with the longest source, and up to
    `_REPLACED` further lines of ``replaced``, which are the indices of lines with a replaced word.
    The longest line is included because Sutskever et al. (2014, table 3) show long sentences: their
    encoder has to store a whole sentence in a vector of fixed size.
    """
    lengths = [len(line.source.split()) for line in system]
    longest = lengths.index(max(lengths))
    shown = {*spread(len(system), _SPREAD), longest}
    others = [index for index in replaced if index not in shown]
    return sorted(shown.union(others[:_REPLACED]))


def shown_words(translation: DecodedLine) -> tuple[ShownWord, ...]:
    """Return the words of a translation, with each unknown word replaced.

    A word that was joined from BPE pieces may contain several unknown tokens. All of them are
    replaced. The shown source word, and how the word was replaced, are those of the last one.
    """
    replacements = iter(translation.replacements)  # in the order of the output
    words = []
    for word in translation.words_before:
        taken = list(islice(replacements, word.count(UNKNOWN_WORD)))
        if taken:
            text = with_replacements(word, iter(taken))
            words.append(ShownWord(text, taken[-1].source_word, taken[-1].by))
        else:
            words.append(ShownWord(word))
    return tuple(words)
