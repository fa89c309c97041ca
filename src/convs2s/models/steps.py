"""What a search asks of a decoder at each step, as arrays: A sentences, K hypotheses of each."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from convs2s.data.batches import Indices

Numbers = NDArray[np.floating]


class Shortlisted(NamedTuple):
    """The types (S,), ascending and with the special tokens, that a batch's sentences may use.

    ``mask`` (B, S) is True where a sentence may not use one.
    """

    types: Indices
    mask: NDArray[np.bool_]


class Limits(NamedTuple):
    """What may come next, beside padding, which never may.

    Attributes:
        unknown_penalty: is subtracted from the log-probability of ``<unk>``.
        must_end: (A,), where nothing but ``</s>`` may follow.
        may_end: whether the others may end.
    """

    unknown_penalty: float
    must_end: NDArray[np.bool_]
    may_end: bool


class Candidates(NamedTuple):
    """The best continuations of a step, C of each sentence."""

    scores: Numbers  # (A, C), log-likelihoods, the best first
    parents: Indices  # (A, C), the hypothesis that each continues
    tokens: Indices  # (A, C), the token that it continues it by
    places: Indices | None  # (A, K), where each hypothesis has the most attention; None without any


class Decoder(Protocol):
    """The incremental state of decoding one batch.

    Attributes:
        keeps_all: whether every sentence stays in the batch until all are done.
    """

    keeps_all: bool

    def best(self, previous: Indices, scores: Numbers, count: int, limits: Limits) -> Candidates:
        """Return at most ``count`` of each sentence's best continuations.

        ``previous`` and ``scores`` (A, K) are each hypothesis's last token and log-likelihood.
        """

    def select(self, rows: Indices) -> None:
        """Continue from other hypotheses: ``rows`` (A * K,) indexes A * K, sentence by sentence."""

    def keep(self, sentences: Indices) -> None:
        """Go on with these sentences alone: ``sentences`` indexes A."""

    def release(self) -> None:
        """Give up what others can use: nothing more is asked of this state."""


class Searched(Protocol):
    """One or several networks that a search asks together.

    Attributes:
        attends: whether any of the networks has attention.
    """

    @property
    def attends(self) -> bool: ...

    def positions(self, side: str) -> int | None:
        """Return the most tokens of a side, ``</s>`` counted, that every network has room for."""

    def start_search(
        self, source: Indices, hypotheses: int, shortlist: Shortlisted | None
    ) -> Decoder:
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
