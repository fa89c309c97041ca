"""BLEU of two kinds and chrF, each number with the signature that says what it is.

One output has many BLEU scores: facebookresearch/fairseq #2860 reports 43.43 on BPE tokens and
40.55 on words for the same translations. All numbers come from sacrebleu; what is set and read here
makes them equal to the tools that the paper scores with: multi-bleu.perl and mteval-v13a.pl.

Both scripts lower A to Z alone. Of blanks they know different ones: multi-bleu.perl splits bytes,
where Perl's ``split`` knows space, tab, line feed, vertical tab, form feed and carriage return; a
no-break space, U+0085 or U+2028 is part of a word. mteval-v13a.pl decodes its files and splits at
all of Unicode's blanks. So does Python's ``split``, but also at U+001C to U+001F.

All functions that take lines refuse, with a UserError, lists of references that are not as long as
the hypotheses, and no lines at all.

What the tokenized BLEU of a test set is made of, sentence by sentence, also goes in a ledger: with
these numbers a paired bootstrap (Koehn 2004) needs no translations.
"""

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Literal

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from convs2s.errors import UserError, failures_of_file

BleuForm = Literal["tokenized", "detokenized"]
Lines = Sequence[str]  # of a file, without their line feeds

SAMPLES = 1000  # resamples of a comparison; sacrebleu's own default

Statistics = npt.NDArray[np.int64]
"""A row for each sentence: words of the hypothesis, words of the reference whose length is nearest,
and how many n-grams of orders 1 to 4 match."""

MOST_LINES = 1_000_000
"""The longest test set that `decode_statistics` reads, as a ledger may be anybody's."""

ORDERS = 4  # of the n-grams that BLEU counts
_COLUMNS = 2 + ORDERS
_BYTES = 4  # of a number; most are zero, which compression takes away
SEPARATORS = "\x1c\x1d\x1e\x1f"  # blanks of Python's that are blanks in neither script

WIDE_BLANKS = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's blanks beyond ASCII, at which multi-bleu.perl does not split."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def _surrogates(blanks: str) -> dict[int, int]:
    """Return what characters become at which sacrebleu must not split.

    No text in UTF-8 holds surrogates, so that words stay as different as they were.
    """
    return {ord(blank): surrogate for surrogate, blank in enumerate(blanks, start=0xD800)}


_NO_BLANKS: dict[BleuForm, dict[int, int]] = {
    "tokenized": _surrogates(SEPARATORS + WIDE_BLANKS),
    "detokenized": _surrogates(SEPARATORS),
}


@dataclass(frozen=True)
class Score:
    """A number, 0 to 100 for BLEU and chrF, and sacrebleu's signature of its settings and version.

    ``lc-ascii`` and ``none-ascii`` in a signature are this module's own, where sacrebleu's ``lc``
    and ``none`` go by Unicode.
    """

    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.score:.2f}"


@dataclass(frozen=True)
class SystemScore:
    """BLEU of a system, with half the width of its 95% confidence interval, both in points."""

    score: float
    interval: float

    def __str__(self) -> str:
        return f"{self.score:.2f} ± {self.interval:.2f}"


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same lines, by paired bootstrap resampling."""

    baseline: SystemScore
    system: SystemScore
    difference: float  # what the system has more than the baseline
    p_value: float  # of so large a difference between systems that are equally good
    signature: str

    def summary(
        self,
        names: Sequence[object],
        counted: str,
    ) -> Iterator[str]:
        """Yield lines of text; ``names`` are the systems', and ``counted`` is what was scored."""
        for name, side in zip(names, (self.baseline, self.system), strict=True):
            yield f"BLEU = {side}  {name}"
        yield f"difference = {self.difference:+.2f}, p = {self.p_value:.4f}, {SAMPLES} resamples"
        yield f"{self.signature}  ({counted})"


def tokenized_bleu(
    hypotheses: Lines,
    *references: Lines,
    lowercase: bool = False,
) -> Score:
    """Score lines of words that ASCII's blanks separate, as multi-bleu.perl does.

    Not smoothed: without a single match of four words the score is 0, as it is without any word
    (where the script divides by zero and stops). ``lowercase`` is its ``-lc``: no case of A to Z.
    """
    return _score(_ScriptBleu("tokenized", lowercase=lowercase), hypotheses, references)


def detokenized_bleu(
    hypotheses: Lines,
    *references: Lines,
    lowercase: bool = False,
) -> Score:
    """Score plain text, tokenized as ``mteval-v13a.pl -c`` does; ``lowercase`` omits the -c."""
    return _score(_ScriptBleu("detokenized", lowercase=lowercase), hypotheses, references)


def chrf(hypotheses: Lines, *references: Lines) -> Score:
    """Score plain text by F2 over its character n-grams up to 6 (Popović 2015), cased."""
    return _score(CHRF(), hypotheses, references)


def length_ratio(hypotheses: Lines, *references: Lines) -> float:
    """Divide the words of the hypotheses by those of the references (checked in section 5.1).

    Of several references the length that is nearest counts; without any word in them the ratio is
    0.
    """
    check_lines(hypotheses, references)
    return float(_ScriptBleu("tokenized").corpus_score(hypotheses, references).ratio)


class SentenceBleu:
    """BLEU of one sentence, 0 to 100, to tell its translations apart; no set's score follows.

    Orders of n-grams without a match are smoothed (sacrebleu's ``exp``), and those that are longer
    than the sentence do not count.
    """

    def __init__(self, form: BleuForm) -> None:
        """Take the words as they are (``tokenized``) or as mteval-v13a does."""
        self._metric = _ScriptBleu(form, effective_order=True)

    def __call__(
        self,
        hypothesis: str,
        *references: str,
    ) -> float:
        """Return the score of one sentence against one or more references."""
        return float(self._metric.sentence_score(hypothesis, references).score)


def compare(
    baseline: Lines,
    system: Lines,
    *references: Lines,
    form: BleuForm = "tokenized",
    samples: int = SAMPLES,
    names: tuple[str, str] = ("baseline", "system"),
) -> Comparison:
    """Test whether two systems' BLEU differs by more than chance (Koehn 2004, paired bootstrap).

    The test set is drawn anew ``samples`` times; sacrebleu's seed is in the signature. The
    references are one or more lists of lines, as ``form`` asks; ``names`` are the systems'.
    """
    check_lines(baseline, references, names[0])
    check_lines(system, references, names[1])
    test = PairedTest(
        [("baseline", baseline), ("system", system)],
        {"BLEU": _ScriptBleu(form)},
        references,
        test_type="bs",
        n_samples=samples,
    )
    signatures, columns = test()
    first, second = (row for row in columns["BLEU"] if isinstance(row, Result))
    p_value = float(second.p_value or 0.0)
    # sacrebleu counts the samples that differ by more than the systems do: none where they are
    # equal, which would make equal systems the most different of all.
    if first.score == second.score:
        p_value = 1.0
    return Comparison(
        baseline=SystemScore(float(first.score), float(first.ci or 0.0)),
        system=SystemScore(float(second.score), float(second.ci or 0.0)),
        difference=float(second.score) - float(first.score),
        p_value=p_value,
        signature=str(signatures["BLEU"]),
    )


def statistics_of(hypotheses: Lines, *references: Lines) -> Statistics:
    """Return what `tokenized_bleu` is computed from, of shape (lines, 6)."""
    check_lines(hypotheses, references)
    counted = _ScriptBleu("tokenized")._extract_corpus_statistics(hypotheses, references)
    return np.array([line[:_COLUMNS] for line in counted], np.int64)


def ngram_totals(statistics: Statistics) -> npt.NDArray[np.int64]:
    """Return how many n-grams of each order the hypotheses have, of shape (lines, 4)."""
    words = statistics[:, :1]
    totals: npt.NDArray[np.int64] = np.maximum(words - np.arange(ORDERS), 0)
    return totals


def bleu_of_statistics(statistics: Statistics) -> float:
    """Return tokenized BLEU, but smoothed (sacrebleu's ``exp``), of statistics (lines, 6)."""
    words, reference, *matches = statistics.sum(0).tolist()
    n_grams = ngram_totals(statistics).sum(0).tolist()
    return float(BLEU.compute_bleu(matches, n_grams, words, reference, "exp").score)


def encode_statistics(statistics: Statistics) -> str:
    """Return statistics of shape (lines, 6) as text: by columns, compressed, in base64.

    The lowest bytes of all numbers come first, then the next ones: long runs of zeros compress.
    """
    numbers = statistics.T.astype("<u4").tobytes()
    planes = np.frombuffer(numbers, np.uint8).reshape(-1, _BYTES).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def decode_statistics(text: str, where: str = "sentence statistics") -> Statistics:
    """Return the statistics, of shape (lines, 6), that `encode_statistics` has written.

    A UserError that begins with ``where`` refuses other text, and more than `MOST_LINES`.
    """
    unpacking = zlib.decompressobj()
    bytes_of_line = _COLUMNS * _BYTES
    with failures_of_file(where, "not the statistics of sentences"):
        packed = base64.b64decode(text, validate=True)
        plain = unpacking.decompress(packed, MOST_LINES * bytes_of_line)
        if not unpacking.eof or not plain or len(plain) % bytes_of_line:
            raise ValueError(f"expected 1 to {MOST_LINES:,} lines of {_COLUMNS} numbers")
    planes = np.frombuffer(plain, np.uint8).reshape(_BYTES, -1)
    numbers = np.frombuffer(planes.T.tobytes(), "<u4").reshape(_COLUMNS, -1)
    statistics = numbers.T.astype(np.int64)
    impossible = (statistics[:, 2:] > ngram_totals(statistics)).any(axis=1)
    if impossible.any():
        line = int(impossible.argmax()) + 1
        raise UserError(f"{where}: sentence {line} has more matches than it has n-grams")
    return statistics


class _ScriptBleu(BLEU):
    """sacrebleu's BLEU with the words and the case of multi-bleu.perl or mteval-v13a.pl."""

    def __init__(
        self,
        form: BleuForm,
        *,
        lowercase: bool = False,
        effective_order: bool = False,
    ) -> None:
        super().__init__(
            tokenize="none" if form == "tokenized" else "13a",
            smooth_method="exp" if form == "detokenized" or effective_order else "none",
            effective_order=effective_order,
            # sacrebleu need not warn of text that is tokenized on purpose
            force=form == "tokenized" or effective_order,
        )
        self._form = form
        self._lowers = lowercase

    def _preprocess_segment(self, sent: str) -> str:
        if not sent.isprintable():  # nearly every line is; the only blank in it is the space
            sent = sent.translate(_NO_BLANKS[self._form])
        words: str = self.tokenizer(sent)
        if self._lowers:  # after entities: to mteval-v13a.pl "&AMP;" is none
            words = words.translate(_LOWER)
        return words

    def get_signature(self) -> Signature:
        """Return sacrebleu's signature, changed where words or case are not sacrebleu's."""
        signature = super().get_signature()
        if self._lowers:
            signature.update("case", "lc-ascii")
        if self._form == "tokenized":
            signature.update("tok", "none-ascii")
        return signature


def _score(
    metric: BLEU | CHRF,
    hypotheses: Lines,
    references: Sequence[Lines],
) -> Score:
    check_lines(hypotheses, references)
    score = metric.corpus_score(hypotheses, references).score
    return Score(score, str(metric.get_signature()))


def check_lines(
    hypotheses: Sequence[object],
    references: Sequence[Lines],
    name: object = "hypotheses",
    files: Sequence[object] = (),
) -> None:
    """Refuse lists of different length, which sacrebleu would cut to the shortest.

    A message names the hypotheses and the references' ``files``.
    """
    if not hypotheses:
        raise UserError(f"{name}: no lines to score; give at least one translation")
    for place, reference in enumerate(references):
        if len(reference) != len(hypotheses):
            which: object = "the reference"
            if files:
                which = files[place]
            elif len(references) > 1:
                which = f"the reference {place + 1}"
            raise UserError(
                f"{name}: {len(hypotheses)} lines, but {which} has {len(reference)}: line "
                "N of one belongs to line N of the other; give both the lines of the same test set"
            )
