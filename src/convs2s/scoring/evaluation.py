"""From the decoded lines of a test set to its scores, with everything that they rest on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import ClassVar, SupportsFloat

from convs2s.config.extensions import check_added, digest_of_extension, failures_of_code
from convs2s.config.task import RougePart, RougeSettings
from convs2s.errors import UserError
from convs2s.files.text import write_json
from convs2s.scoring.bleu import (
    Score,
    check_lines,
    chrf,
    detokenized_bleu,
    encode_statistics,
    length_ratio,
    statistics_of,
    tokenized_bleu,
)
from convs2s.scoring.rouge import ROUGE_NAMES, ROUGE_PARTS, RougeOptions, RougeScores, rouge
from convs2s.scoring.rouge_stem import read_exceptions
from convs2s.scoring.translations import (
    UNKNOWN_WORD,
    DecodedLine,
    read_reference,
    read_translations,
)


@dataclass(frozen=True)
class UnknownWords:
    """How many the output had, and how many the dictionary and copying replaced."""

    total: int
    dictionary: int
    copied: int


@dataclass(frozen=True)
class BleuScores:
    """BLEU of words as they are, and of plain text."""

    tokenized: Score
    detokenized: Score


@dataclass(frozen=True)
class BleuBefore:
    """The same with unknown words left in."""

    bleu: BleuScores


@dataclass(frozen=True)
class BleuEvaluation:
    """BLEU and its relatives of one run on one test set: what its JSON file says."""

    AVERAGED: ClassVar = (
        *("bleu", "chrf", "length_ratio", "before_replacement", "unknown_words", "further"),
    )
    SHARED: ClassVar = ("lines",)

    test_set: str
    lines: int
    bleu: BleuScores
    chrf: Score
    length_ratio: float
    before_replacement: BleuBefore
    unknown_words: UnknownWords
    manifest: Mapping[str, object]  # what the numbers rest on
    sentences: Mapping[str, str]  # encoded statistics of each tokenized BLEU
    further: Mapping[str, Score] = field(default_factory=dict)  # by extensions' metrics

    def scores(self) -> dict[str, Score]:
        """Return each score by the name that reports print."""
        return {
            "tokenized BLEU": self.bleu.tokenized,
            "detokenized BLEU": self.bleu.detokenized,
            "chrF": self.chrf,
            **self.further,
        }

    def measures(self) -> dict[str, object]:
        """Return what runs must share so that their mean means something."""
        signatures = {name: score.signature for name, score in self.scores().items()}
        return {"lines": self.lines, "metrics": list(signatures), **signatures}


@dataclass(frozen=True)
class LeadBaseline:
    """The scores of the first ``words`` words of each source, as if they were outputs."""

    words: int
    rouge: RougeScores


@dataclass(frozen=True)
class RougeBefore:
    """The scores with unknown words left in."""

    rouge: RougeScores


@dataclass(frozen=True)
class RougeEvaluation:
    """ROUGE of one run on one test set: what its JSON file says."""

    AVERAGED: ClassVar = ("rouge", "length_ratio", "before_replacement", "unknown_words")
    SHARED: ClassVar = ("lines", "references", "measure", "lead")

    test_set: str
    lines: int
    references: int
    measure: RougePart  # what reports print first
    rouge: RougeScores
    lead: LeadBaseline
    length_ratio: float  # before any cut
    before_replacement: RougeBefore
    unknown_words: UnknownWords
    manifest: Mapping[str, object]  # what the numbers rest on

    def scores(self) -> dict[str, Score]:
        """Return each score of the measure by the name that reports print."""
        part = ROUGE_PARTS[self.measure]
        return {
            f"{ROUGE_NAMES[kind]} {part}": scores[self.measure]
            for kind, scores in self.rouge.items()
        }

    def measures(self) -> dict[str, object]:
        """Return what runs must share; equal leads mean equal sources and references."""
        leads = {
            f"the lead baseline's {ROUGE_NAMES[kind]} F1": scores["f1"].score
            for kind, scores in self.lead.rouge.items()
        }
        return {
            "lines": self.lines,
            "measure": self.measure,
            "ROUGE": self.rouge["rouge_1"]["f1"].signature,
            "words of the lead baseline": self.lead.words,
            **leads,
        }


Evaluation = BleuEvaluation | RougeEvaluation


def evaluate_bleu(
    *,
    translations: Path,
    raw: Path,
    tokenized: Path,
    output: Path,
    test_set: str,
    manifest: Mapping[str, object],
    metrics: Sequence[str] = (),
) -> None:
    """Score the decoder's JSON lines by BLEU and chrF and write the `BleuEvaluation` as JSON.

    ``raw`` is the target side as published, ``tokenized`` the same in the words of the task.
    """
    system = read_translations(translations)
    plain = read_reference(raw, translations, system)
    in_words = read_reference(tokenized, translations, system)
    text = [line.text for line in system]
    before = [line.text_before for line in system]
    words = [" ".join(line.words) for line in system]
    words_before = [" ".join(line.words_before) for line in system]
    source = [line.source for line in system]
    evaluation = BleuEvaluation(
        test_set=test_set,
        lines=len(system),
        bleu=bleu_scores(words, in_words, text, plain),
        chrf=chrf(text, plain),
        length_ratio=length_ratio(words, in_words),
        before_replacement=BleuBefore(bleu_scores(words_before, in_words, before, plain)),
        unknown_words=_count_unknown_words(system),
        manifest=manifest,
        # By the names that these measures have in the paper's tables.
        sentences={
            "bleu_tokenized": encode_statistics(statistics_of(words, in_words)),
            "bleu_tokenized_before_replacement": encode_statistics(
                statistics_of(words_before, in_words)
            ),
        },
        further={name: further_score(name, text, plain, source=source) for name in metrics},
    )
    write_json(output, evaluation)


def further_score(
    name: str,
    text: Sequence[str],
    *references: Sequence[str],
    source: Sequence[str] | None,
) -> Score:
    """Score plain text against its references by an extension's metric.

    One with a parameter ``source`` reads the sentences that were translated, too.
    """
    metric = check_added("metric", "METRICS", name)
    check_lines(text, references, name)
    read = {}
    with failures_of_code(f"metric {name}"):
        if "source" in signature(metric).parameters:
            if source is None:
                raise UserError(f"metric {name}: reads the source: give it by --source")
            check_lines(text, [source], name, ["the source"])
            read = {"source": source}
        value = metric(text, *references, **read)
        number = value.score if isinstance(value, Score) else value
        is_number = isinstance(number, SupportsFloat) and not isinstance(number, bool)
        if not is_number or not isfinite(number):
            raise UserError(f"metric {name}: expected a finite number, found {number!r}")
    digest = digest_of_extension("METRICS", name)
    if isinstance(value, Score):  # whose signature says what else it rests on
        return replace(value, signature=f"{name}|code:{digest}|{value.signature}")
    return Score(float(value), f"{name}|code:{digest}")


def bleu_scores(
    words: Sequence[str],
    tokenized: Sequence[str],
    text: Sequence[str],
    raw: Sequence[str],
) -> BleuScores:
    """Score words against the reference's words, and plain text against the reference itself."""
    return BleuScores(tokenized_bleu(words, tokenized), detokenized_bleu(text, raw))


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
    """Score the decoder's JSON lines by ROUGE and write the `RougeEvaluation` as JSON.

    The references are the target side as published and further ones of the same lines;
    ``exceptions`` are the stemmer's irregular forms.
    """
    system = read_translations(translations)
    irregular = read_exceptions(exceptions) if exceptions and settings.stem else None
    options = RougeOptions(settings.bytes, settings.stem, irregular, skip_empty=len(references) > 1)
    wanted = [read_reference(path, translations, system) for path in references]
    text = [line.text for line in system]
    before = [line.text_before for line in system]
    lead = [" ".join(line.source.split()[: settings.lead_words]) for line in system]

    def scores(texts: Sequence[str]) -> RougeScores:
        return rouge(texts, *wanted, options=options)

    # The first reference stands for those that an item has not: their length of 0 would be the
    # nearest one to that of a short output.
    filled = []
    for lines in wanted:
        pairs = zip(lines, wanted[0], strict=True)
        filled.append([line if line.strip() else first for line, first in pairs])
    evaluation = RougeEvaluation(
        test_set=test_set,
        lines=len(system),
        references=len(references),
        measure=settings.measure,
        rouge=scores(text),
        lead=LeadBaseline(settings.lead_words, scores(lead)),
        length_ratio=length_ratio(text, *filled),
        before_replacement=RougeBefore(scores(before)),
        unknown_words=_count_unknown_words(system),
        manifest=manifest,
    )
    write_json(output, evaluation)


def _count_unknown_words(system: Sequence[DecodedLine]) -> UnknownWords:
    by = Counter(item.by for line in system for item in line.replacements)
    # within words too: a token inside of a word can be unknown
    total = sum(word.count(UNKNOWN_WORD) for line in system for word in line.words_before)
    return UnknownWords(total, by["dictionary"], by["copied"])
