"""The statistics of sentences: the same BLEU as of the text; what anybody may give is checked."""

import base64
import random
import zlib

import numpy as np
import pytest

from convs2s.errors import UserError
from convs2s.scoring import bleu
from convs2s.scoring.bleu import (
    decode_statistics,
    encode_statistics,
    statistics_of,
    tokenized_bleu,
)
from tests.support.statistics import bleu_of

HYPOTHESES = ["the cat sits on the mat", "a dog ran", "", "one two three four five"]
REFERENCES = [
    "the cat sat on the mat",
    "the dog ran away",
    "nothing",
    "one two three four five six",
]


def lines(number: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [
        " ".join(drawn.choices("abcd", k=drawn.randint(0, 30))) for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        (HYPOTHESES, REFERENCES),
        (lines(400, seed=1), lines(400, seed=2)),
        (["a b c"], ["a b c"]),  # no n-gram of order 4
        (["", ""], ["x", "y"]),
        (["x y z u"], ["a b c d"]),
    ],
)
def test_bleu_is_that_of_the_text(hypotheses: list[str], references: list[str]) -> None:
    statistics = statistics_of(hypotheses, references)
    assert statistics.shape == (len(hypotheses), 6)
    assert bleu_of(statistics) == tokenized_bleu(hypotheses, references).score


def test_bleu_of_sentences_drawn_anew() -> None:
    hypotheses, references = lines(50, seed=3), lines(50, seed=4)
    rows = random.Random(5).choices(range(50), k=50)
    drawn = [hypotheses[row] for row in rows], [references[row] for row in rows]
    statistics = statistics_of(hypotheses, references)[rows]
    assert bleu_of(statistics) == tokenized_bleu(*drawn).score


def test_a_line_is_lengths_and_matches() -> None:
    assert statistics_of(HYPOTHESES, REFERENCES)[:2].tolist() == [
        [6, 6, 5, 3, 1, 0],
        [3, 4, 2, 1, 0, 0],
    ]


def test_of_several_references_the_nearest_length_counts() -> None:
    assert statistics_of(["a b"], ["a"], ["a b c d"]).tolist() == [[2, 1, 2, 1, 0, 0]]


def test_what_is_encoded_is_decoded() -> None:
    statistics = statistics_of(lines(1000, seed=6), lines(1000, seed=7))
    statistics[0] = [70_000, 1 << 31, 69_999, 0, 0, 0]
    text = encode_statistics(statistics)
    assert np.array_equal(decode_statistics(text, "ledger"), statistics)
    assert len(text) < 6 * 1000


def packed(plain: bytes) -> str:
    return base64.b64encode(zlib.compress(plain)).decode("ascii")


@pytest.mark.parametrize(
    "text",
    [
        "no base64!",
        "é",
        base64.b64encode(b"not compressed").decode(),
        packed(b""),
        packed(bytes(23)),
        packed(bytes(24))[:-8],
        packed(bytes(24 * 11)),  # more lines than are read here
    ],
)
def test_other_text_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu, "MOST_LINES", 10)
    with pytest.raises(
        UserError, match="ledger:3: not encoded statistics of sentences"
    ):
        decode_statistics(text, "ledger:3")


def test_more_matches_than_words_are_refused() -> None:
    for line in ([2, 2, 2, 2, 0, 0], [0, 2, 1, 0, 0, 0], [1, 2, 1, 1, 0, 0]):
        statistics = np.array([[2, 2, 2, 1, 0, 0], line])
        with pytest.raises(
            UserError, match="sentence 2 has more matching n-grams than n-grams"
        ):
            decode_statistics(encode_statistics(statistics), "ledger:3")
