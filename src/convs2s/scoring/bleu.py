"""BLEU in its two kinds and chrF, each number with the signature that says what it is.

One output has many BLEU scores: facebookresearch/fairseq #2860 reports 43.43 on BPE tokens and
40.55 on words for the same translations. All numbers come from sacrebleu; the settings here make
them equal to the tools that the paper scores with: multi-bleu.perl and mteval-v13a.pl, both cased.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from convs2s.errors import UserError

BleuKind = Literal["tokenized", "detokenized"]

SAMPLES = 1000
"""Resamples of a comparison; sacrebleu's own default."""


@dataclass(frozen=True)
class Score:
    """A number and what it is.

    Attributes:
        score: 0 to 100 for BLEU and chrF, a quotient for the length ratio.
        signature: sacrebleu's signature of the metric's settings and version.
    """

    score: float
    signature: str


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same lines, by paired bootstrap resampling.

    Attributes:
        baseline: BLEU of the baseline.
        system: BLEU of the system that is held against it.
        baseline_interval: half the width of the baseline's 95% confidence interval, in BLEU points.
        system_interval: the same of the system.
        p_value: how probable so large a difference is between systems that are equally good.
    """

    baseline: Score
    system: Score
    baseline_interval: float
    system_interval: float
    p_value: float

    @property
    def difference(self) -> float:
        """What the system has more than the baseline, in BLEU points."""
        return self.system.score - self.baseline.score


def tokenized_bleu(
    hypotheses: Sequence[str], *references: Sequence[str], lowercase: bool = False
) -> Score:
    """Score tokenized text by its words as they are, as multi-bleu.perl does.

    Not smoothed: without a single match of four words the score is 0, as it is without any word
    (where the script stops with a division by zero).

    Args:
        hypotheses: lines of words separated by spaces.
        references: one or more lists of lines, tokenized like the hypotheses.
        lowercase: compare without case, as ``multi-bleu.perl -lc``.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    return _bleu(_tokenized(lowercase), hypotheses, references)


def detokenized_bleu(
    hypotheses: Sequence[str], *references: Sequence[str], lowercase: bool = False
) -> Score:
    """Score plain text as ``mteval-v13a.pl -c`` does, whose tokenization is part of the metric.

    Args:
        hypotheses: lines of plain text.
        references: one or more lists of lines of plain text.
        lowercase: compare without case, as mteval-v13a.pl without ``-c``.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    return _bleu(_detokenized(lowercase), hypotheses, references)


class SentenceBleu:
    """BLEU of one sentence, to tell its translations apart; no score of a set follows from it.

    Orders of n-grams without a match are smoothed (sacrebleu's ``exp``), and those that are longer
    than the sentence do not count.
    """

    def __init__(self, kind: BleuKind) -> None:
        """Take the words as they are (``tokenized``) or as mteval-v13a does."""
        words = "none" if kind == "tokenized" else "13a"
        self._metric = BLEU(tokenize=words, smooth_method="exp", effective_order=True, force=True)

    def __call__(self, hypothesis: str, *references: str) -> float:
        """Return the score, 0 to 100, of one sentence against one or more references."""
        score: float = self._metric.sentence_score(hypothesis, references).score
        return score


def chrf(hypotheses: Sequence[str], *references: Sequence[str]) -> Score:
    """Score plain text by F2 over its character n-grams up to 6 (Popović 2015), cased.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    _check_lines(hypotheses, references)
    metric = CHRF()
    score = metric.corpus_score(hypotheses, references).score
    return Score(score, str(metric.get_signature()))


def length_ratio(hypotheses: Sequence[str], *references: Sequence[str]) -> Score:
    """Divide the words of the hypotheses by those of the references (section 5.1's check).

    Args:
        hypotheses: lines of words separated by spaces.
        references: one or more lists of lines; of several, the length that is nearest counts.

    Returns:
        The quotient, 0 where the references are empty, and the signature of the tokenized BLEU
        whose ``ratio`` it is.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    _check_lines(hypotheses, references)
    metric = BLEU(tokenize="none", smooth_method="none", force=True, max_ngram_order=1)
    ratio = metric.corpus_score(hypotheses, references).ratio
    return Score(ratio, str(metric.get_signature()))


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    *references: Sequence[str],
    kind: BleuKind = "tokenized",
    samples: int = SAMPLES,
    names: tuple[str, str] = ("baseline", "system"),
) -> Comparison:
    """Ask whether two systems' BLEU differs by more than chance (Koehn 2004, paired bootstrap).

    The samples follow from sacrebleu's seed, which the signature shows.

    Args:
        baseline: one system's lines.
        system: the other system's lines.
        references: one or more lists of lines, in the form that ``kind`` asks for.
        kind: which BLEU.
        samples: how many times the test set is drawn anew.
        names: what errors call the two.

    Raises:
        UserError: the lists differ in length, or there are no lines.
    """
    _check_lines(baseline, references, names[0])
    _check_lines(system, references, names[1])
    metrics = {"BLEU": _tokenized() if kind == "tokenized" else _detokenized()}
    systems = [("baseline", baseline), ("system", system)]
    test = PairedTest(systems, metrics, references, test_type="bs", n_samples=samples)
    signatures, columns = test()
    first, second = (row for row in columns["BLEU"] if isinstance(row, Result))
    # sacrebleu counts the samples that differ by more than the systems do: none where they are
    # equal, which would make equal systems the most different of all
    p_value = float(second.p_value or 0.0) if first.score != second.score else 1.0
    return Comparison(
        baseline=Score(float(first.score), str(signatures["BLEU"])),
        system=Score(float(second.score), str(signatures["BLEU"])),
        baseline_interval=float(first.ci or 0.0),
        system_interval=float(second.ci or 0.0),
        p_value=p_value,
    )


def _tokenized(lowercase: bool = False) -> BLEU:
    # force: these lines are tokenized on purpose, sacrebleu need not warn of it
    return BLEU(tokenize="none", smooth_method="none", lowercase=lowercase, force=True)


def _detokenized(lowercase: bool = False) -> BLEU:
    return BLEU(tokenize="13a", smooth_method="exp", lowercase=lowercase)


def _bleu(metric: BLEU, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    _check_lines(hypotheses, references)
    score = metric.corpus_score(hypotheses, references).score
    return Score(score, str(metric.get_signature()))


def _check_lines(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], name: str = "hypotheses"
) -> None:
    """Refuse lists of different length, which sacrebleu would cut to the shortest."""
    if not hypotheses:
        raise UserError(f"{name}: no lines to score; give at least one translation")
    for number, reference in enumerate(references, start=1):
        if len(reference) != len(hypotheses):
            which = f"reference {number}" if len(references) > 1 else "reference"
            raise UserError(
                f"{name}: {len(hypotheses)} lines, but the {which} has {len(reference)}: BLEU "
                "compares line N with line N; give both the lines of the same test set"
            )
