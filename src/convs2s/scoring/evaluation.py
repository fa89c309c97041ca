"""Score the decoded lines of a test set, and write the scores with all that they depend on."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import ClassVar, Literal, SupportsFloat

from convs2s.config.bleu import BleuTokenizer
from convs2s.config.extensions import check_added, digest_of_extension, failures_of_code
from convs2s.config.task import RougePart, RougeSettings
from convs2s.errors import UserError
from convs2s.files.text import write_json
from convs2s.scoring.bleu import (
    Score,
    check_lines,
    chrf,
    corpus_bleu,
    encode_statistics,
    length_ratio,
    statistics_of,
    warning_of_bleu,
)
from convs2s.scoring.data_counts import Overlap, read_data_counts
from convs2s.scoring.rouge import (
    ROUGE_NAMES,
    ROUGE_PARTS,
    RougeOptions,
    RougeScores,
    rouge,
    warning_of_rouge,
)
from convs2s.scoring.rouge_stem import NO_EXCEPTIONS, read_exceptions
from convs2s.scoring.translations import (
    UNKNOWN_WORD,
    DecodedLine,
    read_reference,
    read_translations,
)


@dataclass(frozen=True)
class UnknownWords:
    """Counts of unknown words in the output."""

    total: int  # before replacement
    dictionary: int  # replaced by an entry of the dictionary
    copied: int  # replaced by a copy of the source word


@dataclass(frozen=True)
class BleuScores:
    """BLEU of words that are separated by blanks, and of plain text."""

    tokenized: Score
    detokenized: Score


@dataclass(frozen=True)
class BleuEvaluation:
    """The content of the JSON file with one run's scores on one test set: BLEU, chrF, length ratio.

    ``AVERAGED`` lists the fields of which a summary of several runs has the means. ``SHARED`` lists
    the fields that are equal in all runs.
    """

    AVERAGED: ClassVar = (
        "bleu",
        "chrf",
        "length_ratio",
        "before_replacement",
        "unknown_words",
        "further",
    )
    SHARED: ClassVar = ("lines",)

    test_set: str
    lines: int
    bleu: BleuScores
    chrf: Score
    length_ratio: float
    # Before the replacement of unknown words.
    before_replacement: Mapping[Literal["bleu"], BleuScores]
    unknown_words: UnknownWords
    manifest: Mapping[str, object]  # everything that the numbers depend on
    sentences: Mapping[str, str]  # measure -> encoded statistics of its sentences
    # Scores by metrics of extensions.
    further: Mapping[str, Score] = field(default_factory=dict)
    overlap: Overlap | None = None  # with the training text; None: not known

    def scores(self) -> dict[str, Score]:
        """Return the scores, by the names that reports print."""
        return {
            "tokenized BLEU": self.bleu.tokenized,
            "detokenized BLEU": self.bleu.detokenized,
            "chrF": self.chrf,
            **self.further,
        }

    def measures(self) -> dict[str, object]:
        """Return the properties that runs must share, so that their scores can be averaged."""
        signatures = {name: score.signature for name, score in self.scores().items()}
        return {"lines": self.lines, "metrics": list(signatures), **signatures}


@dataclass(frozen=True)
class LeadBaseline:
    """The scores of a baseline whose output is the first ``words`` words of each source."""

    words: int
    rouge: RougeScores


@dataclass(frozen=True)
class RougeEvaluation:
    """The content of the JSON file with one run's ROUGE on one test set.

    ``AVERAGED`` and ``SHARED`` are as in `BleuEvaluation`.
    """

    AVERAGED: ClassVar = (
        "rouge",
        "length_ratio",
        "before_replacement",
        "unknown_words",
    )
    SHARED: ClassVar = ("lines", "references", "measure", "lead")

    test_set: str
    lines: int
    references: int
    measure: RougePart  # the one that reports print first
    rouge: RougeScores
    lead: LeadBaseline
    # Of whole outputs and references, before ROUGE's limit of bytes.
    length_ratio: float
    # Before the replacement of unknown words.
    before_replacement: Mapping[Literal["rouge"], RougeScores]
    unknown_words: UnknownWords
    manifest: Mapping[str, object]  # everything that the numbers depend on
    overlap: Overlap | None = None  # with the training text; None: not known

    def scores(self) -> dict[str, Score]:
        """Return the scores in ``measure``, by the names that reports print."""
        part = ROUGE_PARTS[self.measure]
        return {
            f"{ROUGE_NAMES[kind]} {part}": scores[self.measure]
            for kind, scores in self.rouge.items()
        }

    def measures(self) -> dict[str, object]:
        """Return the properties that runs must share, so that their scores can be averaged.

        Equal scores of the lead baseline show that the sources and references are equal.
        """
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
    tokenize: BleuTokenizer = "13a",
    metrics: Sequence[str] = (),
    counts: Path | None = None,
) -> None:
    """Score the decoder's JSON lines by BLEU and chrF, and write a `BleuEvaluation` as JSON.

    ``raw`` is the target side as published, and ``tokenized`` the target side in the words of the
    task. ``tokenize`` splits plain text for detokenized BLEU; a warning says if it finds no words.
    ``metrics`` are the names of further metrics, from extensions. ``counts`` are those of the
    task's data; None: they are not known.
    """
    system = read_translations(translations)
    plain = read_reference(raw, translations, system)
    in_words = read_reference(tokenized, translations, system)
    text = [line.text for line in system]
    text_before = [line.text_before for line in system]
    words = [" ".join(line.words) for line in system]
    words_before = [" ".join(line.words_before) for line in system]
    _warn(warning_of_bleu(tokenize, plain))
    source = [line.source for line in system]
    further = {}
    for name in metrics:
        further[name] = further_score(name, text, plain, source=source)
    evaluation = BleuEvaluation(
        test_set=test_set,
        lines=len(system),
        bleu=bleu_scores(words, in_words, text, plain, tokenize),
        chrf=chrf(text, plain),
        length_ratio=length_ratio(words, in_words),
        before_replacement={
            "bleu": bleu_scores(words_before, in_words, text_before, plain, tokenize)
        },
        unknown_words=_count_unknown_words(system),
        manifest=manifest,
        # The keys are names of measures (convs2s.config.measures); the ledger has the same keys.
        sentences={
            "bleu_tokenized": encode_statistics(statistics_of(words, in_words)),
            "bleu_tokenized_before_replacement": encode_statistics(
                statistics_of(words_before, in_words)
            ),
        },
        further=further,
        overlap=_overlap(counts, test_set),
    )
    write_json(output, evaluation)


def further_score(
    name: str,
    text: Sequence[str],
    *references: Sequence[str],
    source: Sequence[str] | None,
) -> Score:
    """Return the score of plain text against its references by an extension's metric.

    If the metric has a parameter ``source``, it also gets the source sentences.

    Raises:
        UserError: the lists differ in length, the metric needs sources but ``source`` is None, or
            the metric returns no finite number.
    """
    metric = check_added("metric", "METRICS", name)
    check_lines(text, references, name)
    keywords = {}
    with failures_of_code(f"metric {name}"):
        if "source" in signature(metric).parameters:
            if source is None:
                raise UserError(
                    f"metric {name}: needs the source; give it with --source"
                )
            check_lines(text, [source], name, ["the source"])
            keywords = {"source": source}
        value = metric(text, *references, **keywords)
        number = value.score if isinstance(value, Score) else value
        is_number = isinstance(number, SupportsFloat) and not isinstance(number, bool)
        if not is_number or not isfinite(number):
            raise UserError(
                f"metric {name}: expected a finite number, found {number!r}"
            )
    digest = digest_of_extension("METRICS", name)
    if isinstance(value, Score):  # keep the metric's own signature as well
        return replace(value, signature=f"{name}|code:{digest}|{value.signature}")
    return Score(float(value), f"{name}|code:{digest}")


def bleu_scores(
    words: Sequence[str],
    tokenized: Sequence[str],
    text: Sequence[str],
    raw: Sequence[str],
    tokenize: BleuTokenizer,
) -> BleuScores:
    """Return the tokenized BLEU of ``words`` and the detokenized BLEU of ``text``.

    ``words`` are scored against ``tokenized``, the reference in words. ``text`` is split by
    ``tokenize`` and scored against ``raw``, the reference as published.
    """
    return BleuScores(
        corpus_bleu(words, tokenized), corpus_bleu(text, raw, form=tokenize)
    )


def _warn(warning: str | None) -> None:
    if warning:
        print(f"warning: {warning}", file=sys.stderr)


def evaluate_rouge(
    *,
    translations: Path,
    references: Sequence[Path],
    exceptions: Path | None,
    output: Path,
    test_set: str,
    settings: RougeSettings,
    manifest: Mapping[str, object],
    counts: Path | None = None,
) -> None:
    """Score the decoder's JSON lines by ROUGE, and write a `RougeEvaluation` as JSON.

    ``references`` are the target side as published and any further references of the same lines.
    ``exceptions`` is the file of irregular forms for the stemmer. ``counts`` is as in
    `evaluate_bleu`.
    """
    system = read_translations(translations)
    irregular = NO_EXCEPTIONS
    if exceptions and settings.stem:
        irregular = read_exceptions(exceptions)
    options = RougeOptions(
        settings.bytes, settings.stem, irregular, skip_empty=len(references) > 1
    )
    reference_lines = [
        read_reference(path, translations, system) for path in references
    ]
    _warn(warning_of_rouge(*reference_lines))
    text = [line.text for line in system]
    text_before = [line.text_before for line in system]
    lead = [" ".join(line.source.split()[: settings.lead_words]) for line in system]

    def scores(texts: Sequence[str]) -> RougeScores:
        return rouge(texts, *reference_lines, options=options)

    # Not every item has all references; an empty line stands for a missing one. For the length
    # ratio, the first reference takes its place. Otherwise, the missing one with its length of 0
    # could be the nearest in length to a short output.
    filled = []
    for lines in reference_lines:
        pairs = zip(lines, reference_lines[0], strict=True)
        filled.append([line if line.strip() else first for line, first in pairs])
    evaluation = RougeEvaluation(
        test_set=test_set,
        lines=len(system),
        references=len(references),
        measure=settings.measure,
        rouge=scores(text),
        lead=LeadBaseline(settings.lead_words, scores(lead)),
        length_ratio=length_ratio(text, *filled),
        before_replacement={"rouge": scores(text_before)},
        unknown_words=_count_unknown_words(system),
        manifest=manifest,
        overlap=_overlap(counts, test_set),
    )
    write_json(output, evaluation)


def _overlap(counts: Path | None, test_set: str) -> Overlap | None:
    """Return what a test set shares with the training text; None if it is not known."""
    return read_data_counts(counts).overlap.sets.get(test_set) if counts else None


def _count_unknown_words(system: Sequence[DecodedLine]) -> UnknownWords:
    """Count the unknown words in a system's output, and their replacements."""
    replaced_by = Counter(item.by for line in system for item in line.replacements)
    # A word of several tokens can contain <unk>, even more than once.
    total = sum(
        word.count(UNKNOWN_WORD) for line in system for word in line.words_before
    )
    return UnknownWords(total, replaced_by["dictionary"], replaced_by["copied"])
