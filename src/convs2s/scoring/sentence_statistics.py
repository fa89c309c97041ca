"""What the tokenized BLEU of a test set is made of, sentence by sentence; short, for a ledger.

A paired bootstrap (Koehn 2004) draws sentences anew; with these numbers it needs no translations.
"""

import base64
import binascii
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU

from convs2s.errors import UserError
from convs2s.scoring.bleu import tokenized_matches

Statistics = npt.NDArray[np.int64]
"""A row for each sentence: words of the hypothesis, words of the reference whose length is nearest,
and how many n-grams of orders 1 to 4 match."""

MOST_LINES = 1_000_000
"""The longest test set that `decode` reads, as what it reads may be anybody's."""

_ORDERS = 4
_COLUMNS = 2 + _ORDERS
_BYTES = 4  # of a number; most are zero, which compression takes away


def statistics_of(hypotheses: Sequence[str], *references: Sequence[str]) -> Statistics:
    """Return the statistics, of shape (lines, 6), of tokenized text.

    Args:
        hypotheses: lines of words separated by ASCII blanks.
        references: one or more lists of lines, tokenized like the hypotheses.

    Raises:
        UserError: a list of references is not as long as the hypotheses, or there are no lines.
    """
    return np.array(tokenized_matches(hypotheses, *references), np.int64)


def bleu_of(statistics: Statistics) -> float:
    """Return the tokenized BLEU, 0 to 100, of sentences: what `tokenized_bleu` gives for them.

    Args:
        statistics: of shape (lines, 6); rows may be drawn several times.
    """
    words, reference, *matches = statistics.sum(axis=0).tolist()
    totals = [int(np.maximum(statistics[:, 0] - before, 0).sum()) for before in range(_ORDERS)]
    score = BLEU.compute_bleu(matches, totals, words, reference, max_ngram_order=_ORDERS)
    return float(score.score)


def encode(statistics: Statistics) -> str:
    """Return statistics of shape (lines, 6) as text, a few bytes for each line.

    Column by column, the bytes of equal weight together, compressed, in base64.
    """
    numbers = np.ascontiguousarray(statistics.T.reshape(-1), dtype="<u4")
    planes = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, _BYTES).T)
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")


def decode(text: str, where: str = "sentence statistics") -> Statistics:
    """Return the statistics, of shape (lines, 6), that `encode` has written.

    Args:
        text: from a ledger, which may be anybody's.
        where: what a message begins with.

    Raises:
        UserError: it is no such text, holds impossible numbers, or is of more than `MOST_LINES`.
    """
    most = MOST_LINES * _COLUMNS * _BYTES
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=True)
        plain = unpacking.decompress(packed, most)
    except (binascii.Error, zlib.error, UnicodeEncodeError) as error:
        raise UserError(f"{where}: not the statistics of sentences: {error}") from None
    if not unpacking.eof or len(plain) % (_COLUMNS * _BYTES):
        raise UserError(
            f"{where}: not the statistics of sentences: expected {_COLUMNS} numbers for each of at "
            f"most {MOST_LINES:,} lines"
        )
    planes = np.frombuffer(plain, np.uint8).reshape(_BYTES, -1)
    numbers = np.ascontiguousarray(planes.T).view("<u4").reshape(_COLUMNS, -1)
    return _possible(numbers.T.astype(np.int64), where)


def _possible(statistics: Statistics, where: str) -> Statistics:
    """Return the statistics; refuse a line with more matches than n-grams."""
    totals = np.maximum(statistics[:, :1] - np.arange(_ORDERS), 0)
    wrong = (statistics[:, 2:] > totals).any(axis=1)
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0]) + 1
        raise UserError(f"{where}: sentence {line} has more matches than it has n-grams")
    return statistics
