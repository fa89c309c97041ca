"""Tokenized and detokenized BLEU: signatures, blanks, case, and the statistics of sentences.

That they equal the original scripts' is in reference/test_bleu.py.
"""

import random
from functools import partial

import numpy as np
import pytest
import yaml

from convs2s.scoring.bleu import (
    SEPARATORS,
    WIDE_BLANKS,
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
from convs2s.scoring.significance import measured
from tests.support.refusals import says

REFERENCE = ["l&apos; homme voit deux voitures rouges .", "il pleut ce matin à Lyon ."]
HYPOTHESIS = ["l&apos; homme voit deux voitures .", "il pleut ce matin à Paris ."]
plain_bleu = partial(corpus_bleu, form="13a")
ASCII_BLANKS = " \t\n\v\f\r"
"""What Perl's ``split`` takes for blanks in bytes."""


def test_signatures_name_the_kind() -> None:
    texts = HYPOTHESIS, REFERENCE
    for score, start in (
        (corpus_bleu(*texts), "1|case:mixed|eff:no|tok:none-ascii"),
        (
            corpus_bleu(*texts, REFERENCE, lowercase=True),
            "2|case:lc-ascii|eff:no|tok:none-ascii|smooth:none|",
        ),
        (plain_bleu(*texts), "1|case:mixed|eff:no|tok:13a|"),
        (chrf(*texts), "1|case:mixed|eff:yes|nc:6|nw:0|"),
    ):
        assert score.signature.startswith(f"nrefs:{start}")


def test_text_scores_from_0_to_100() -> None:
    assert chrf(REFERENCE, REFERENCE).score == pytest.approx(100)
    assert chrf(["", ""], REFERENCE).score == 0
    # A sentence is not asked for longer n-grams than it has.
    assert sentence_bleu("tokenized")("a b", "a b") == pytest.approx(100)


def test_words_end_at_the_blanks_of_the_scripts() -> None:
    """One that ends no word differs from the others."""
    line = "one two three four five"
    for blank in (*ASCII_BLANKS, *SEPARATORS, *WIDE_BLANKS):
        joined = line.replace(" ", blank, 1)
        other = line.replace(" ", "\u2028" if blank == "\xa0" else "\xa0", 1)
        in_bytes = blank in ASCII_BLANKS
        in_plain_text = blank not in SEPARATORS
        for metric, splits in ((corpus_bleu, in_bytes), (plain_bleu, in_plain_text)):
            assert (metric([joined], [line]).score > 99) == splits, ascii(blank)
            assert metric([joined], [joined]).score == pytest.approx(100)
        assert corpus_bleu([joined], [other]).score < 100
        words = 5 if in_bytes else 4
        assert length_ratio([joined], ["one two three four"]) == words / 4


def test_without_case_means_a_to_z() -> None:
    """Entities are decoded before that: mteval-v13a.pl knows ``&amp;``, and no ``&AMP;``."""
    line = "THE MAN AND THE DOG"
    lowered = line.lower()
    for metric in (corpus_bleu, plain_bleu):
        assert metric([line], [lowered], lowercase=True).score == pytest.approx(100)
        assert metric([line], [lowered]).score < 10
        for upper, lower in ("Éé", "Σσ", "ẞß", "\u212ak"):
            found = metric([f"{upper} {line}"], [f"{lower} {line}"], lowercase=True)
            assert found.score < 100
    reference = ["one & two three four"]
    for written, is_entity in (("&amp;", True), ("&AMP;", False)):
        line = reference[0].replace("&", written)
        score = plain_bleu([line], reference, lowercase=True).score
        assert (score > 99) == is_entity


ENGLISH = "She runs to the river."

# A form of BLEU and a line in which it sees no words.
UNSEEN = yaml.safe_load("""
- [13a, 她每天早上六点去河边跑步。]
- [intl, 她每天早上六点去河边跑步。]
- [tokenized, 她每天早上六点去河边跑步。]
- [13a, 彼は毎朝六時に川まで走ります。]
- [zh, テーブルのうえでねむる]
- [zh, เธอวิ่งไปที่แม่น้ำทุกเช้า]
- [13a, គាត់រត់ទៅទន្លេរៀងរាល់ព្រឹក]
""")
SEEN = yaml.safe_load("""
- [zh, 她每天早上六点去河边跑步。]
- [char, 她每天早上六点去河边跑步。]
- [tokenized, 她 每天 早上 六点 去 河边 跑步 。]
- [char, เธอวิ่งไปที่แม่น้ำทุกเช้า]
- [tokenized, เธอ วิ่ง ไป ที่ แม่น้ำ ทุก เช้า]
- [13a, Вона біжить до річки.]
- [13a, 그는 매일 아침 강으로 달린다.]
""")


def test_bleu_says_where_it_sees_no_words() -> None:
    """A word of a script without blanks has few letters. One line of twenty is let pass."""
    for form, line in UNSEEN:
        warning = str(warning_of_bleu(form, [ENGLISH, line], [ENGLISH] * 2))
        says(warning, "1 words", "1 of 4 lines", "tokenizer zh for Chinese or char")
        assert warning_of_bleu(form, [ENGLISH] * 19, [line]) is None
    for form, line in SEEN:
        assert warning_of_bleu(form, [ENGLISH, line], [ENGLISH] * 2) is None, line


def test_rouge_says_where_it_sees_no_words() -> None:
    for line in (
        "книга 5 на столі 2020",
        "她每天早上六点去河边跑步。",
        "το βιβλίο είναι",
    ):
        warning = str(warning_of_rouge([line, ENGLISH]))
        says(warning, "1 of 2 lines", "words of a to z", "score bleu")
        assert warning_of_rouge([line, *[ENGLISH] * 19]) is None
    for line in ("L'été, elle a mangé à Évry.", "Con mèo đang ngủ.", "2020: 5 %", ""):
        assert warning_of_rouge([line, ENGLISH]) is None


def test_bleu_of_statistics_is_that_of_the_text() -> None:
    """Also of sentences drawn anew, and after they were written and read."""
    draw = random.Random(1)
    hypotheses, references = (
        [" ".join(draw.choices("abcd", k=draw.randint(0, 30))) for _ in range(400)]
        for _ in range(2)
    )
    statistics = statistics_of(hypotheses, references)
    rows = draw.choices(range(400), k=400)
    drawn = [[side[row] for row in rows] for side in (hypotheses, references)]
    score = corpus_bleu(*drawn).score
    assert measured(statistics[rows]).bleu[0] == pytest.approx(score, rel=1e-12)
    # No n-gram of order 4, and no word.
    for text in ("a b c", ""):
        score = corpus_bleu([text], ["a b c"]).score
        assert measured(statistics_of([text], ["a b c"])).bleu[0] == score
    statistics[0] = [70_000, 1 << 31, 69_999, 0, 0, 0]
    text = encode_statistics(statistics)
    assert np.array_equal(decode_statistics(text, "ledger"), statistics)
    assert len(text) < 6 * 400
