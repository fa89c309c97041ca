"""BLEU in its two kinds and chrF, each number with the signature that says what it is.

One output has many BLEU scores: facebookresearch/fairseq #2860 reports 43.43 on BPE tokens and
40.55 on words for the same translations. All numbers come from sacrebleu; what is set and read here
makes them equal to the tools that the paper scores with: multi-bleu.perl and mteval-v13a.pl.

Both scripts lower A to Z alone. Of blanks they know different ones: multi-bleu.perl splits bytes,
where Perl's ``split`` knows space, tab, line feed, vertical tab, form feed and carriage return; a
no-break space, U+0085 or U+2028 is part of a word. mteval-v13a.pl decodes its files and splits at
all of Unicode's blanks. So does Python's ``split``, but also at U+001C to U+001F, which are blanks
in neither script.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Literal

from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from convs2s.errors import UserError

BleuKind = Literal["tokenized", "detokenized"]

SAMPLES = 1000
"""Resamples of a comparison; sacrebleu's own default."""

SEPARATORS = "\x1c\x1d\x1e\x1f"
"""Blanks of Python's that are blanks in neither script."""

WIDE_BLANKS = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's blanks beyond ASCII, at which multi-bleu.perl does not split."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
# Characters that sacrebleu must not split at become surrogates, which no text in UTF-8 holds: words
# stay as different as they were.
_SURROGATES = {ord(blank): 0xD800 + n for n, blank in enumerate(SEPARATORS + WIDE_BLANKS)}
_NO_BLANKS: dict[BleuKind, dict[int, int]] = {
    "tokenized": _SURROGATES,
    "detokenized": {ord(blank): _SURROGATES[ord(blank)] for blank in SEPARATORS},
}


@dataclass(frozen=True)
class Score:
    """A number and what it is.

    Attributes:
        score: 0 to 100 for BLEU and chrF, a quotient for the length ratio.
        signature: sacrebleu's signature of the metric's settings and version; ``lc-ascii`` and
            ``none-ascii`` are this module's own, where sacrebleu's ``lc`` and ``none`` go by
            Unicode.
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

    Words end at ASCII's blanks alone. Not smoothed: without a single match of four words the score
    is 0, as it is without any word (where the script stops with a division by zero).

    Args:
        hypotheses: lines of words separated by ASCII blanks.
        references: one or more lists of lines, tokenized like the hypotheses.
        lowercase: compare without case of A to Z, as ``multi-bleu.perl -lc``.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    return _bleu(_multi_bleu(lowercase), hypotheses, references)


def detokenized_bleu(
    hypotheses: Sequence[str], *references: Sequence[str], lowercase: bool = False
) -> Score:
    """Score plain text as ``mteval-v13a.pl -c`` does, whose tokenization is part of the metric.

    Args:
        hypotheses: lines of plain text.
        references: one or more lists of lines of plain text.
        lowercase: compare without case of A to Z, as mteval-v13a.pl without ``-c``.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    return _bleu(_mteval(lowercase), hypotheses, references)


def tokenized_matches(hypotheses: Sequence[str], *references: Sequence[str]) -> list[list[int]]:
    """Count what `tokenized_bleu` is computed from, for each line.

    Args:
        hypotheses: lines of words separated by ASCII blanks.
        references: one or more lists of lines, tokenized like the hypotheses.

    Returns:
        For each line: its words, those of the reference whose length is nearest, and its n-grams of
        orders 1 to 4 that match one of a reference.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    _check_lines(hypotheses, references)
    metric = _multi_bleu()
    counted = metric._extract_corpus_statistics(hypotheses, references)
    return [list(line[: 2 + metric.max_ngram_order]) for line in counted]


class SentenceBleu:
    """BLEU of one sentence, to tell its translations apart; no score of a set follows from it.

    Orders of n-grams without a match are smoothed (sacrebleu's ``exp``), and those that are longer
    than the sentence do not count.
    """

    def __init__(self, kind: BleuKind) -> None:
        """Take the words as they are (``tokenized``) or as mteval-v13a does."""
        self._metric = _ScriptBleu(kind, smooth_method="exp", effective_order=True)

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
    metric = _ScriptBleu("tokenized", smooth_method="none", max_ngram_order=1)
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
    metrics = {"BLEU": _multi_bleu() if kind == "tokenized" else _mteval()}
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


class _ScriptBleu(BLEU):
    """sacrebleu's BLEU with the words and the case that the scripts know."""

    def __init__(
        self,
        kind: BleuKind,
        *,
        smooth_method: str,
        lowercase: bool = False,
        effective_order: bool = False,
        max_ngram_order: int = 4,
    ) -> None:
        """Take the words as they are (``tokenized``) or as mteval-v13a does."""
        super().__init__(
            tokenize="none" if kind == "tokenized" else "13a",
            smooth_method=smooth_method,
            effective_order=effective_order,
            max_ngram_order=max_ngram_order,
            # some lines are tokenized on purpose, sacrebleu need not warn of it
            force=kind == "tokenized" or effective_order,
        )
        self._kind, self._lowers = kind, lowercase

    def _preprocess_segment(self, sent: str) -> str:
        if not sent.isprintable():  # nearly every line is; the only blank in it is the space
            sent = sent.translate(_NO_BLANKS[self._kind])
        words: str = self.tokenizer(sent)
        # mteval-v13a.pl lowers what it has decoded: "&AMP;" is no entity
        return words.translate(_LOWER) if self._lowers else words

    def get_signature(self) -> Signature:
        """Return sacrebleu's signature with what is done in another way than sacrebleu's."""
        signature = super().get_signature()
        if self._lowers:
            signature.update("case", "lc-ascii")
        if self._kind == "tokenized":
            signature.update("tok", "none-ascii")
        return signature


def _multi_bleu(lowercase: bool = False) -> BLEU:
    return _ScriptBleu("tokenized", smooth_method="none", lowercase=lowercase)


def _mteval(lowercase: bool = False) -> BLEU:
    return _ScriptBleu("detokenized", smooth_method="exp", lowercase=lowercase)


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
