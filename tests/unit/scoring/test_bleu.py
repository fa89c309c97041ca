"""Scores, their signatures and the errors on the way to them."""

import math
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from convs2s.errors import UserError
from convs2s.scoring.bleu import (
    SEPARATORS,
    WIDE_BLANKS,
    Score,
    SentenceBleu,
    chrf,
    compare,
    detokenized_bleu,
    length_ratio,
    statistics_of,
    tokenized_bleu,
)

REFERENCE = [
    "l&apos; homme voit deux voitures rouges .",
    "il pleut depuis ce matin à Lyon .",
]
HYPOTHESIS = [
    "l&apos; homme voit deux voitures .",
    "il pleut depuis ce matin à Paris .",
]


def test_signatures_name_the_kind() -> None:
    tokenized = tokenized_bleu(HYPOTHESIS, REFERENCE).signature
    assert tokenized.startswith(
        "nrefs:1|case:mixed|eff:no|tok:none-ascii|smooth:none|version:2."
    )
    detokenized = detokenized_bleu(HYPOTHESIS, REFERENCE).signature
    assert detokenized.startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2."
    )
    assert chrf(HYPOTHESIS, REFERENCE).signature.startswith(
        "nrefs:1|case:mixed|eff:yes|nc:6|nw:0"
    )
    two = tokenized_bleu(HYPOTHESIS, REFERENCE, REFERENCE, lowercase=True).signature
    assert two.startswith("nrefs:2|case:lc-ascii|eff:no|tok:none-ascii|")
    lower = detokenized_bleu(HYPOTHESIS, REFERENCE, lowercase=True).signature
    assert lower.startswith("nrefs:1|case:lc-ascii|eff:no|tok:13a|")


def bleu_by_hand(hypotheses: list[str], references: list[str]) -> float:
    """Return BLEU of words as they are, up to four of them, not smoothed (Papineni et al. 2002)."""
    pairs = [
        (h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)
    ]
    logs = []
    for order in range(1, 5):
        matches = total = 0
        for words, others in pairs:
            found, known = (
                Counter(tuple(one[i : i + order]) for i in range(len(one) - order + 1))
                for one in (words, others)
            )
            matches += sum(min(count, known[ngram]) for ngram, count in found.items())
            total += sum(found.values())
        if not matches:
            return 0.0
        logs.append(math.log(matches / total))
    ratio = sum(len(others) for _, others in pairs) / sum(
        len(words) for words, _ in pairs
    )
    return 100 * math.exp(sum(logs) / 4 + min(0.0, 1 - ratio))


@pytest.mark.parametrize(
    "hypotheses",
    [HYPOTHESIS, HYPOTHESIS[::-1], [line.upper() for line in HYPOTHESIS], REFERENCE],
    ids=["near", "exchanged", "in capitals", "equal"],
)
def test_tokenized_bleu_is_that_by_hand(hypotheses: list[str]) -> None:
    found = tokenized_bleu(hypotheses, REFERENCE).score
    assert found == pytest.approx(bleu_by_hand(hypotheses, REFERENCE))


def test_plain_text_is_tokenized_before_it_is_scored() -> None:
    text = ["Two cars, red.", "It rains in Lyon, today."]
    split = ["Two cars , red .", "It rains in Lyon , today ."]
    reference = ["Two red cars, there.", "It rains in Lyon, now, today."]
    assert detokenized_bleu(text, reference) == detokenized_bleu(split, reference)
    assert (
        tokenized_bleu(text, reference).score != tokenized_bleu(split, reference).score
    )


ASCII_BLANKS = " \t\n\v\f\r"
"""What Perl's ``split`` takes for blanks in bytes."""


def is_split(metric: Callable[..., Score], blank: str) -> bool:
    """Say whether a metric finds two words where this character stands between them."""
    line = "one two three four five"
    joined = line.replace(" ", blank, 1)
    as_hypothesis, as_reference = (
        metric([one], [other]).score > 99
        for one, other in ((joined, line), (line, joined))
    )
    assert as_hypothesis == as_reference
    assert metric([joined], [joined]).score == pytest.approx(100)
    return as_hypothesis


def test_the_blanks_are_those_of_python() -> None:
    blanks = {
        chr(number) for number in range(sys.maxunicode + 1) if chr(number).isspace()
    }
    assert {*ASCII_BLANKS, *SEPARATORS, *WIDE_BLANKS} == blanks


@pytest.mark.parametrize("blank", [*ASCII_BLANKS, *SEPARATORS, *WIDE_BLANKS], ids=ascii)
def test_words_end_at_the_blanks_of_the_scripts(blank: str) -> None:
    in_bytes, decoded = blank in ASCII_BLANKS, blank not in SEPARATORS
    assert is_split(tokenized_bleu, blank) == in_bytes
    assert is_split(detokenized_bleu, blank) == decoded
    words = length_ratio([f"one{blank}two"], ["one two three four"]) * 4
    assert words == 1 + in_bytes


def test_a_sentence_is_not_asked_for_longer_n_grams_than_it_has() -> None:
    assert SentenceBleu("tokenized")("a b", "a b") == pytest.approx(100.0)


def test_blanks_that_end_no_word_differ_from_each_other() -> None:
    line, other = "a\u00a0b c d e f", "a\u2028b c d e f"
    assert tokenized_bleu([line], [other]).score < 100
    assert tokenized_bleu([line], [line]).score == pytest.approx(100)
    scores = (
        SentenceBleu("tokenized")(line, other),
        SentenceBleu("detokenized")(line, other),
    )
    assert scores[0] < scores[1] == pytest.approx(100)


@pytest.mark.parametrize("metric", [tokenized_bleu, detokenized_bleu])
def test_without_case_means_a_to_z(metric: Callable[..., Score]) -> None:
    line = "THE MAN AND THE DOG"
    assert metric([line], [line.lower()], lowercase=True).score == pytest.approx(100)
    for letters in ("É é", "Σ σ", "ẞ ß", "\u212a k"):
        upper, lower = (f"{letter} {line}" for letter in letters.split(" "))
        assert metric([upper], [lower], lowercase=True).score < 100


def test_entities_are_decoded_before_the_case_goes() -> None:
    """mteval-v13a.pl knows ``&amp;``, and no ``&AMP;``."""
    reference = ["one & two three four"]
    for written, is_entity in {"&amp;": True, "&AMP;": False}.items():
        score = detokenized_bleu(
            [f"one {written} two three four"], reference, lowercase=True
        ).score
        assert (score > 99) == is_entity


def test_identical_text_scores_100() -> None:
    for metric in (tokenized_bleu, detokenized_bleu, chrf):
        assert metric(REFERENCE, REFERENCE).score == pytest.approx(100)
    assert length_ratio(REFERENCE, REFERENCE) == 1


def test_length_ratio_counts_words() -> None:
    assert length_ratio(HYPOTHESIS, REFERENCE) == pytest.approx(14 / 15)


@pytest.mark.parametrize("metric", [tokenized_bleu, detokenized_bleu, chrf])
def test_empty_translations_score_0(metric: type) -> None:
    assert metric(["", ""], REFERENCE).score == 0
    assert length_ratio(["", ""], REFERENCE) == 0


@pytest.mark.parametrize(
    "metric", [tokenized_bleu, detokenized_bleu, chrf, length_ratio]
)
def test_counts_must_be_equal(metric: type) -> None:
    with pytest.raises(
        UserError, match=r"hypotheses: 2 lines, but the reference has 1"
    ):
        metric(HYPOTHESIS, REFERENCE[:1])
    with pytest.raises(UserError, match=r"2 lines, but reference 2 has 3"):
        metric(HYPOTHESIS, REFERENCE, [*REFERENCE, "x"])
    with pytest.raises(UserError, match=r"hypotheses: no lines to score"):
        metric([], [])


def test_compare_finds_a_difference_that_is_there() -> None:
    references = [
        f"the man number {i} sees two red cars in the street ." for i in range(40)
    ]
    worse = [
        line.replace("two red cars", "a car") if len(line) % 2 else line
        for line in references
    ]
    result = compare(worse, references, references)
    assert result.system.score == pytest.approx(100)
    assert result.baseline.score < result.system.score
    assert result.p_value < 0.05
    assert "|bs:1000|seed:12345|" in f"|{result.signature}|"
    assert compare(worse, references, references) == result
    turned = compare(references, worse, references)
    assert turned.system == result.baseline
    assert turned.system.interval > 0
    assert turned.baseline == result.system


def test_case_counts_where_nothing_else_is_asked_for() -> None:
    lower, upper = ["the man sees two red cars"], ["The Man Sees Two Red Cars"]
    assert tokenized_bleu(upper, lower).score == 0
    assert compare(upper, lower, lower).baseline.score == 0
    assert statistics_of(upper, lower).tolist() == [[6, 6, 0, 0, 0, 0]]


def test_compare_finds_none_between_equals() -> None:
    result = compare(HYPOTHESIS, HYPOTHESIS, REFERENCE, form="detokenized")
    assert result.p_value == 1
    assert "tok:13a" in result.signature


def test_compare_names_the_side_that_differs() -> None:
    with pytest.raises(UserError, match="system: 1 lines, but the reference has 2"):
        compare(HYPOTHESIS, HYPOTHESIS[:1], REFERENCE)
