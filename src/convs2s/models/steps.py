"""The data that a search and a decoder exchange at each step, and constants of the networks.

The networks of torch and the graphs of ONNX share these constants. This module imports no torch.

Shapes: A sentences, K hypotheses of each.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.data.batches import Indices

SQRT_HALF = math.sqrt(0.5)
"""Factor of a sum of two terms, which keeps the variance of the terms (section 3.4)."""

VECTOR = 16
"""Number of fp32 values in the widest vector that a CPU adds in one instruction (512 bits).

Sources are padded to a multiple of this length. A softmax adds its terms vector by vector. A row
that ends within a vector is added in another order than the same row with more padding, so its
rounding would depend on the other sentences of the batch.
"""

Numbers = NDArray[np.floating]
Precision = Literal["fp32", "bf16", "int8"]
Average = Literal["probabilities", "log_probabilities"]
"""What an ensemble averages over its networks at each step."""


class Shortlisted(NamedTuple):
    """The target types that the sentences of a batch may use.

    ``types`` (S,) are ascending and include the special tokens. ``mask`` (B, S) is True where a
    sentence may not use a type.
    """

    types: Indices
    mask: NDArray[np.bool_]


class Limits(NamedTuple):
    """Constraints on the next token. Padding is never allowed, and needs no field."""

    unknown_penalty: float  # what is subtracted from the log-probability of ``<unk>``
    must_end: NDArray[np.bool_]  # (A,), True if only ``</s>`` is allowed for a sentence
    may_end: bool  # whether ``</s>`` is allowed for the other sentences


class Candidates(NamedTuple):
    """The best continuations of a step, C for each sentence."""

    scores: Numbers  # (A, C), log-likelihoods, the best first
    parents: Indices  # (A, C), the hypothesis that is continued, 0 to K - 1
    tokens: Indices  # (A, C), the token that is appended to this hypothesis
    # (A, K), the source position with the most attention; None without attention.
    places: Indices | None


def least_positions(limits: Iterable[int | None]) -> int | None:
    """Return the smallest limit on the number of tokens; None if no network has a limit."""
    return min((limit for limit in limits if limit is not None), default=None)
