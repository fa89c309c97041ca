"""What two searches find."""

import pytest

from convs2s.decoding.search import Hypothesis


def assert_alike(
    found: list[list[Hypothesis]],
    expected: list[list[Hypothesis]],
    tolerance: float = 1e-9,
) -> None:
    """Compare each sentence's hypotheses, in order; scores within a share of their value."""
    for ours, theirs in zip(found, expected, strict=True):
        for mine, one in zip(ours, theirs, strict=True):
            assert (mine.tokens, mine.alignment) == (one.tokens, one.alignment)
            assert mine.score == pytest.approx(one.score, tolerance)
