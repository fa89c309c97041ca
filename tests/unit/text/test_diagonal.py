"""The geometric series around the diagonal against plain sums, and the tension's updates."""

import numpy as np
import pytest

from convs2s.text.fast_align import Shapes, _series, tightened


def shapes(*pairs: tuple[int, int]) -> Shapes:
    source, target = np.array(pairs).T
    return Shapes(source, target)


def test_shapes_are_counted() -> None:
    counted = shapes((3, 2), (1, 1), (3, 2))
    rows = zip(
        counted.position, counted.length, counted.others, counted.count, strict=True
    )
    assert [tuple(map(int, row)) for row in rows] == [
        (1, 1, 1, 1),
        (1, 2, 3, 2),
        (2, 2, 3, 2),
    ]


@pytest.mark.parametrize(
    ("others", "length"), [(1, 1), (7, 3), (3, 7), (40, 40), (1023, 5)]
)
@pytest.mark.parametrize("tension", [0.1, 4.0, 14.0])
def test_series_are_the_sums_over_all_positions(
    others: int, length: int, tension: float
) -> None:
    one = shapes((others, length))
    near, distances = _series(one.position, one.length, one.others, tension)
    grid = abs(one.position[:, None] / length - np.arange(1, others + 1) / others)
    np.testing.assert_allclose(near, np.exp(-tension * grid).sum(1), rtol=1e-9)
    np.testing.assert_allclose(
        distances, (grid * np.exp(-tension * grid)).sum(1), rtol=1e-6, atol=1e-12
    )


def test_words_near_the_diagonal_tighten_it() -> None:
    corpus = shapes(*[(10, 10)] * 5)
    assert tightened(4.0, 0.02, corpus) > tightened(4.0, 0.1, corpus)
    assert tightened(4.0, 0.0, corpus) == 14.0
    assert tightened(4.0, 1.0, corpus) == 0.1
