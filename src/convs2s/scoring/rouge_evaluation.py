"""From the outputs of a test set to their ROUGE scores, beside those of the lead baseline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.task import RougePart, RougeSettings
from convs2s.files.text import write_json
from convs2s.scoring.bleu import length_ratio
from convs2s.scoring.evaluation import UnknownWords, count_unknown_words, read_reference
from convs2s.scoring.rouge import RougeOptions, RougeScores, rouge
from convs2s.scoring.rouge_words import read_exceptions
from convs2s.scoring.translations import read_translations


@dataclass(frozen=True)
class LeadBaseline:
    """What the first words of each source score, as if they were outputs.

    Attributes:
        words: how many are taken.
        rouge: their scores.
    """

    words: int
    rouge: RougeScores


@dataclass(frozen=True)
class RougeBeforeReplacement:
    """The scores of the same outputs with their unknown words left in."""

    rouge: RougeScores


@dataclass(frozen=True)
class RougeEvaluation:
    """The ROUGE scores of one run on one test set: what its JSON file says.

    Attributes:
        test_set: the test set's name.
        lines: its number of lines.
        references: how many references each line has.
        measure: which of recall, precision and F1 the headline is.
        rouge: after unknown-word replacement.
        lead: the same of the sources' first words.
        length_ratio: words of the outputs by those of the references, before any cut.
        before_replacement: the scores before unknown-word replacement.
        unknown_words: what became of them.
        manifest: what the numbers rest on: configuration, seed, checksums, versions, hardware.
    """

    test_set: str
    lines: int
    references: int
    measure: RougePart
    rouge: RougeScores
    lead: LeadBaseline
    length_ratio: float
    before_replacement: RougeBeforeReplacement
    unknown_words: UnknownWords
    manifest: Mapping[str, object]


def evaluate_rouge(
    *,
    translations: Path,
    references: Sequence[Path],
    exceptions: Path | None,
    output: Path,
    test_set: str,
    settings: RougeSettings,
    manifest: Mapping[str, object],
) -> None:
    """Score a decoded test set and write the scores as JSON.

    Args:
        translations: the decoder's JSON lines.
        references: the target side as published, and further references of the same lines.
        exceptions: irregular forms for the stemmer; None: it goes without.
        output: the JSON file, of the fields of `RougeEvaluation`.
        test_set: the test set's name.
        settings: how it is scored.
        manifest: what the numbers rest on.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    system, options = read_translations(translations), _options(settings, exceptions, references)
    wanted = [read_reference(path, translations, len(system)) for path in references]
    text, before = [line.text for line in system], [line.text_before for line in system]
    result = RougeEvaluation(
        test_set=test_set,
        lines=len(system),
        references=len(references),
        measure=settings.measure,
        rouge=rouge(text, *wanted, options=options),
        lead=_lead([line.source for line in system], wanted, options, settings.lead_words),
        length_ratio=length_ratio(text, *_filled(wanted)).score,
        before_replacement=RougeBeforeReplacement(rouge(before, *wanted, options=options)),
        unknown_words=count_unknown_words(system),
        manifest=manifest,
    )
    write_json(output, result)


def _filled(references: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the references, the first in place of those that an item has not.

    Else their length of 0 would be the nearest one to that of a short output.
    """
    for reference in references:
        yield [
            one if one.strip() else own for one, own in zip(reference, references[0], strict=True)
        ]


def _options(
    settings: RougeSettings, exceptions: Path | None, references: Sequence[Path]
) -> RougeOptions:
    irregular = read_exceptions(exceptions) if exceptions and settings.stem else None
    return RougeOptions(settings.bytes, settings.stem, irregular, skip_empty=len(references) > 1)


def _lead(
    sources: Sequence[str], references: Sequence[Sequence[str]], options: RougeOptions, words: int
) -> LeadBaseline:
    """Score the first words of each source, which blanks separate."""
    lead = [" ".join(source.split()[:words]) for source in sources]
    return LeadBaseline(words, rouge(lead, *references, options=options))
