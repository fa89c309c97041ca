"""What a search asks of a decoder at each step, as arrays: A sentences, K hypotheses of each."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.data.batches import Indices

VECTOR = 16
"""Numbers of fp32 in the widest vector that CPUs add up at a time (512 bits). The source is padded
to whole ones: a softmax adds its terms up in vectors, and a row that ends in part of one in another
order than a row with more padding. No sentence's rounding may depend on the others of its batch."""

Numbers = NDArray[np.floating]
Precision = Literal["fp32", "bf16", "int8"]
Average = Literal["probabilities", "log_probabilities"]
"""What of the networks is averaged at each step."""


class Shortlisted(NamedTuple):
    """The types (S,), ascending and with the special tokens, that a batch's sentences may use.

    ``mask`` (B, S) is True where a sentence may not use one.
    """

    types: Indices
    mask: NDArray[np.bool_]


class Limits(NamedTuple):
    """What may come next, beside padding, which never may."""

    unknown_penalty: float  # is subtracted from the log-probability of ``<unk>``
    must_end: NDArray[np.bool_]  # (A,), where nothing but ``</s>`` may follow
    may_end: bool  # whether the others may end


class Candidates(NamedTuple):
    """The best continuations of a step, C of each sentence."""

    scores: Numbers  # (A, C), log-likelihoods, the best first
    parents: Indices  # (A, C), the hypothesis that each continues
    tokens: Indices  # (A, C), the token that it continues it by
    places: Indices | None  # (A, K), where each hypothesis has the most attention; None without any


def least_positions(limits: Iterable[int | None]) -> int | None:
    """Return the most tokens that every network has room for; None: none of them has a limit."""
    return min((limit for limit in limits if limit is not None), default=None)
