"""Tokenized and detokenized BLEU: signatures, blanks, case, and the statistics of sentences.

That they equal the original scripts' is in reference/test_bleu.py.
"""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from convs2s.config.bleu import BleuForm
from convs2s.scoring.bleu import (
    SEPARATORS,
    WIDE_BLANKS,
    Score,
    chrf,
    corpus_bleu,
    decode_statistics,
    encode_statistics,
    length_ratio,
    sentence_bleu,
    statistics_of,
    warning_of_bleu,
)
from convs2s.scoring.rouge import warning_of_rouge
from tests.support.statistics import bleu_of

REFERENCE = ["l&apos; homme voit deux voitures rouges .", "il pleut ce matin à Lyon ."]
HYPOTHESIS = ["l&apos; homme voit deux voitures .", "il pleut ce matin à Paris ."]
plain_bleu = partial(corpus_bleu, form="13a")
ASCII_BLANKS = " \t\n\v\f\r"
"""What Perl's ``split`` takes for blanks in bytes."""


def test_signatures_name_the_kind() -> None:
    lower = corpus_bleu(HYPOTHESIS, REFERENCE, REFERENCE, lowercase=True)
    for score, start in (
        (corpus_bleu(HYPOTHESIS, REFERENCE), "1|case:mixed|eff:no|tok:none-ascii"),
        (lower, "2|case:lc-ascii|eff:no|tok:none-ascii|smooth:none|"),
        (
            corpus_bleu(HYPOTHESIS, REFERENCE, form="13a"),
            "1|case:mixed|eff:no|tok:13a|",
        ),
        (chrf(HYPOTHESIS, REFERENCE), "1|case:mixed|eff:yes|nc:6|nw:0|"),
    ):
        assert score.signature.startswith(f"nrefs:{start}")


def test_text_scores_from_0_to_100() -> None:
    for metric in (corpus_bleu, plain_bleu, chrf):
        assert metric(REFERENCE, REFERENCE).score == pytest.approx(100)
        assert metric(["", ""], REFERENCE).score == 0
    assert length_ratio(REFERENCE, REFERENCE) == 1
    assert length_ratio(HYPOTHESIS, REFERENCE) == pytest.approx(13 / 14)
    # A sentence is not asked for longer n-grams than it has.
    assert sentence_bleu("tokenized")("a b", "a b") == pytest.approx(100)


@pytest.mark.parametrize("blank", [*ASCII_BLANKS, *SEPARATORS, *WIDE_BLANKS], ids=ascii)
def test_words_end_at_the_blanks_of_the_scripts(blank: str) -> None:
    """One that ends no word differs from the others."""
    line = "one two three four five"
    joined = line.replace(" ", blank, 1)
    other = line.replace(" ", "\u2028" if blank == "\xa0" else "\xa0", 1)
    in_bytes = blank in ASCII_BLANKS
    for metric, splits in (
        (corpus_bleu, in_bytes),
        (plain_bleu, blank not in SEPARATORS),
    ):
        assert (metric([joined], [line]).score > 99) == splits
        assert (metric([line], [joined]).score > 99) == splits
        assert metric([joined], [joined]).score == pytest.approx(100)
    assert corpus_bleu([joined], [other]).score < 100
    words = 5 if in_bytes else 4
    assert length_ratio([joined], ["one two three four"]) == words / 4


@pytest.mark.parametrize("metric", [corpus_bleu, plain_bleu])
def test_without_case_means_a_to_z(metric: Callable[..., Score]) -> None:
    line = "THE MAN AND THE DOG"
    assert metric([line], [line.lower()], lowercase=True).score == pytest.approx(100)
    assert metric([line], [line.lower()]).score < 10
    for letters in ("É é", "Σ σ", "ẞ ß", "\u212a k"):
        upper, lower = letters.split(" ")
        found = metric([f"{upper} {line}"], [f"{lower} {line}"], lowercase=True)
        assert found.score < 100


def test_entities_are_decoded_before_the_case_goes() -> None:
    """mteval-v13a.pl knows ``&amp;``, and no ``&AMP;``."""
    for written, is_entity in {"&amp;": True, "&AMP;": False}.items():
        line = [f"one {written} two three four"]
        text = ["one & two three four"]
        score = corpus_bleu(line, text, form="13a", lowercase=True).score
        assert (score > 99) == is_entity


ENGLISH = "She runs to the river."
CHINESE = "她每天早上六点去河边跑步。"


@pytest.mark.parametrize(
    ("form", "line", "words"),
    [
        ("13a", CHINESE, "1 words in 12 letters"),
        ("intl", CHINESE, "1 words"),
        ("none", CHINESE, "1 words"),
        ("zh", CHINESE, None),
        ("char", CHINESE, None),
        ("tokenized", CHINESE, "1 words"),
        ("tokenized", "她 每天 早上 六点 去 河边 跑步 。", None),
        ("13a", "彼は毎朝六時に川まで走ります。", "1 words"),
        ("zh", "テーブルのうえでねむる", "1 words"),
        ("zh", "เธอวิ่งไปที่แม่น้ำทุกเช้า", "1 words"),
        ("char", "เธอวิ่งไปที่แม่น้ำทุกเช้า", None),
        ("tokenized", "เธอ วิ่ง ไป ที่ แม่น้ำ ทุก เช้า", None),
        ("13a", "គាត់រត់ទៅទន្លេរៀងរាល់ព្រឹក", "1 words"),
        ("13a", "Вона біжить до річки.", None),
        ("13a", "그는 매일 아침 강으로 달린다.", None),
        ("13a", "", None),
    ],
)
def test_bleu_says_where_it_sees_no_words(
    form: BleuForm, line: str, words: str | None
) -> None:
    """A word of a script without blanks has few letters. One line of twenty is let pass."""
    warning = warning_of_bleu(form, [ENGLISH, line], [ENGLISH] * 2)
    assert (warning is None) == (words is None)
    if warning and words:
        assert words in warning
        assert "1 of 4 lines" in warning
        assert "tokenizer zh for Chinese or char" in warning
    assert warning_of_bleu(form, [ENGLISH] * 19, [line]) is None


@pytest.mark.parametrize(
    ("line", "is_seen"),
    [
        ("нова книга лежить на столі", False),
        ("книга 5 на столі 2020", False),
        (CHINESE, False),
        ("το βιβλίο είναι καινούργιο", False),
        ("L'été dernier, elle a mangé à Évry.", True),
        ("Con mèo đang ngủ trên bàn.", True),
        ("2020: 5 %", True),
        ("", True),
    ],
)
def test_rouge_says_where_it_sees_no_words(line: str, is_seen: bool) -> None:
    warning = warning_of_rouge([line, ENGLISH])
    assert (warning is None) == is_seen
    if warning:
        assert "1 of 2 lines" in warning
        assert "words of a to z" in warning
        assert "score bleu" in warning
    assert warning_of_rouge([line, *[ENGLISH] * 19]) is None


def lines(number: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [
        " ".join(drawn.choices("abcd", k=drawn.randint(0, 30))) for _ in range(number)
    ]


def test_bleu_of_statistics_is_that_of_the_text() -> None:
    """Also of sentences drawn anew, and after they were written and read."""
    hypotheses = lines(400, seed=1)
    references = lines(400, seed=2)
    statistics = statistics_of(hypotheses, references)
    rows = random.Random(5).choices(range(400), k=400)
    drawn = [[side[row] for row in rows] for side in (hypotheses, references)]
    assert bleu_of(statistics[rows]) == corpus_bleu(*drawn).score
    # No n-gram of order 4, and no word.
    for text in ("a b c", ""):
        score = corpus_bleu([text], ["a b c"]).score
        assert bleu_of(statistics_of([text], ["a b c"])) == score
    statistics[0] = [70_000, 1 << 31, 69_999, 0, 0, 0]
    text = encode_statistics(statistics)
    assert np.array_equal(decode_statistics(text, "ledger"), statistics)
    assert len(text) < 6 * 400


def test_a_line_of_statistics_is_lengths_and_matches() -> None:
    hypotheses = ["the cat sits on the mat", "a b"]
    found = statistics_of(
        hypotheses, ["the cat sat on the mat", "a"], ["", "a b c d"]
    ).tolist()
    assert found == [[6, 6, 5, 3, 1, 0], [2, 1, 2, 1, 0, 0]]
