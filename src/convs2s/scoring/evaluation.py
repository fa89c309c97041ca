"""From the translations of a test set to its scores, with everything that they rest on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.options import LearnedMetric
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_json
from convs2s.scoring.bleu import Score, chrf, detokenized_bleu, length_ratio, tokenized_bleu
from convs2s.scoring.learned import learned_scores
from convs2s.scoring.sentence_statistics import encode, statistics_of
from convs2s.scoring.translations import UNKNOWN_WORD, DecodedLine, read_translations

SENTENCES = ("bleu_tokenized", "bleu_tokenized_before_replacement")
"""The measures of the paper's tables whose sentences an evaluation keeps."""


@dataclass(frozen=True)
class BleuScores:
    """BLEU of its two kinds: of words as they are, and of plain text."""

    tokenized: Score
    detokenized: Score


@dataclass(frozen=True)
class BeforeReplacement:
    """The scores of the same translations with their unknown words left in."""

    bleu: BleuScores


@dataclass(frozen=True)
class UnknownWords:
    """How many the output had, and how many the dictionary and copying replaced."""

    total: int
    dictionary: int
    copied: int


@dataclass(frozen=True)
class Evaluation:
    """The scores of one run on one test set: what its JSON file says.

    Attributes:
        test_set: the test set's name.
        lines: its number of lines.
        bleu: after unknown-word replacement.
        chrf: of plain text.
        length_ratio: words of the translations by those of the references.
        before_replacement: BLEU before unknown-word replacement.
        unknown_words: what became of them.
        manifest: what the numbers rest on: configuration, seed, checksums, versions, hardware.
        sentences: of which each tokenized BLEU is made, by the names of `SENTENCES`:
            `sentence_statistics.decode` reads it.
        learned: the score of a learned metric, where one was asked for.
    """

    test_set: str
    lines: int
    bleu: BleuScores
    chrf: Score
    length_ratio: float
    before_replacement: BeforeReplacement
    unknown_words: UnknownWords
    manifest: Mapping[str, object]
    sentences: Mapping[str, str]
    learned: Score | None = None


def evaluate_bleu(
    *,
    translations: Path,
    raw: Path,
    tokenized: Path,
    output: Path,
    test_set: str,
    manifest: Mapping[str, object],
    learned_metric: LearnedMetric | None = None,
) -> None:
    """Score a decoded test set and write the scores as JSON.

    Args:
        translations: the decoder's JSON lines.
        raw: the target side as published, for detokenized BLEU and chrF.
        tokenized: the target side in the words of the task, for tokenized BLEU.
        output: the JSON file, of the fields of `Evaluation`.
        test_set: the test set's name.
        manifest: what the numbers rest on.
        learned_metric: a metric to score by as well; None: no other.

    Raises:
        UserError: a file is missing, malformed or of other lines, or a metric is not installed.
    """
    system = read_translations(translations)
    raw_lines = read_reference(raw, translations, len(system))
    tokenized_lines = read_reference(tokenized, translations, len(system))
    learned = _learned(learned_metric, system, raw_lines)
    evaluation = _evaluation(test_set, system, raw_lines, tokenized_lines, manifest, learned)
    write_json(output, evaluation)


def _learned(
    metric: LearnedMetric | None, system: Sequence[DecodedLine], references: Sequence[str]
) -> Score | None:
    """Return the score of a learned metric, where one is asked for."""
    if metric is None:
        return None
    sources, text = [one.source for one in system], [one.text for one in system]
    return learned_scores(metric, sources, text, references).whole


def _evaluation(
    test_set: str,
    system: Sequence[DecodedLine],
    raw: Sequence[str],
    tokenized: Sequence[str],
    manifest: Mapping[str, object],
    learned: Score | None,
) -> Evaluation:
    words, text = [" ".join(line.words) for line in system], [line.text for line in system]
    before = [" ".join(line.words_before) for line in system], [one.text_before for one in system]
    return Evaluation(
        test_set=test_set,
        lines=len(system),
        bleu=bleu_scores(words, tokenized, text, raw),
        chrf=chrf(text, raw),
        length_ratio=length_ratio(words, tokenized).score,
        before_replacement=BeforeReplacement(bleu_scores(before[0], tokenized, before[1], raw)),
        unknown_words=count_unknown_words(system),
        manifest=manifest,
        sentences=_sentences((words, before[0]), tokenized),
        learned=learned,
    )


def read_reference(reference: Path, translations: Path, expected: int) -> list[str]:
    """Read one reference of each of the ``expected`` lines of translations.

    Raises:
        UserError: the file is missing, or has another number of lines.
    """
    lines = list(read_lines(reference))
    if len(lines) != expected:
        raise UserError(
            f"{translations} has {expected} lines but {reference} has {len(lines)}: a test set is "
            "scored as a whole; decode it again, or give its own reference"
        )
    return lines


def bleu_scores(
    words: Sequence[str], tokenized: Sequence[str], text: Sequence[str], raw: Sequence[str]
) -> BleuScores:
    """Score words against the reference's words, and plain text against the reference itself."""
    return BleuScores(tokenized_bleu(words, tokenized), detokenized_bleu(text, raw))


def _sentences(systems: Iterable[Sequence[str]], reference: Sequence[str]) -> dict[str, str]:
    """Return the encoded statistics of both kinds of words: by the names of `SENTENCES`."""
    pairs = zip(SENTENCES, systems, strict=True)
    return {name: encode(statistics_of(words, reference)) for name, words in pairs}


def count_unknown_words(system: Sequence[DecodedLine]) -> UnknownWords:
    """Count the unknown words of the output, and by what they were replaced, if they were."""
    by = Counter(item.by for line in system for item in line.replacements)
    # within words too: a token inside of a word can be unknown
    total = sum(word.count(UNKNOWN_WORD) for line in system for word in line.words_before)
    return UnknownWords(total, by["dictionary"], by["copied"])
