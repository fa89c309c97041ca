"""ROUGE by hand: what the golden data have few of, and what follows from items."""

import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from convs2s.errors import UserError
from convs2s.scoring.rouge import (
    ROUGE_NAMES,
    ROUGE_PARTS,
    Hits,
    RougeItem,
    RougeOptions,
    RougeScores,
    RougeTriple,
    mean_rouge,
    ngram_hits,
    rouge,
    rouge_items,
    subsequence_hits,
    triple,
)
from convs2s.scoring.rouge_stem import RougeExceptions, read_exceptions, rouge_stem

PLAIN = RougeOptions()


def words(text: str, byte_limit: int | None = None) -> list[str]:
    return RougeOptions(byte_limit).words(text)


def item(hypothesis: str, *references: str, options: RougeOptions = PLAIN) -> RougeItem:
    (found,) = rouge_items(
        [hypothesis], *([one] for one in references), options=options
    )
    return found


def test_words_are_what_the_script_leaves() -> None:
    assert words("The Low-Cost -- flight's #1 <unk> café, É\u00a0x") == [
        *("the", "low", "cost", "flight", "s", "1", "unk", "caf", "x")
    ]
    assert words("-") == words("") == words("\u2028\r\t") == words("日本語") == []


def test_the_byte_limit_cuts_through_letters() -> None:
    assert words("aé b", 2) == ["a"]  # the first byte of é
    assert words("aé bc", 5) == ["a", "b"]
    assert words("abcdef", 4) == ["abcd"]
    assert words("  ab", 3) == ["a"]  # blanks count


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("developmental", "develop"),
        ("hopping", "hop"),
        ("say", "sai"),
        ("toy", "toi"),
        ("syzygy", "syzygi"),
        ("1980s", "1980"),
    ],
)
def test_stems(word: str, stem: str) -> None:
    assert rouge_stem(word) == stem


def test_words_of_three_letters_are_neither_stemmed_nor_looked_up() -> None:
    forms = RougeExceptions({"men": "man", "mice": "mouse"}, "")
    options = RougeOptions(stem=True, exceptions=forms)
    assert options.words("Men was mice houses") == ["men", "was", "mouse", "hous"]


def test_hits_are_counted_as_often_as_in_both() -> None:
    assert ngram_hits(list("aaab"), list("aac"), 1) == (2, 3, 4)
    assert ngram_hits(list("abab"), list("abcab"), 2) == (2, 4, 3)
    assert ngram_hits(["a"], ["a"], 2) == (0, 0, 0)


def test_the_longest_common_subsequence_is_that_of_all_subsequences() -> None:
    generator = random.Random(1)
    for _ in range(200):
        ours, theirs = (
            generator.choices("abc", k=generator.randint(0, 7)) for _ in range(2)
        )
        both = max(
            size
            for size in range(len(theirs) + 1)
            if set(combinations(ours, size)) & set(combinations(theirs, size))
        )
        assert subsequence_hits(ours, theirs) == (both, len(theirs), len(ours))


def test_f1_is_of_rounded_values() -> None:
    assert triple(Hits(2, 3, 7)) == RougeTriple(0.66667, 0.28571, 0.4)
    assert triple(Hits(1, 3, 3)) == RougeTriple(0.33333, 0.33333, 0.33333)


def test_nothing_over_nothing_is_zero() -> None:
    nothing = {kind: RougeTriple(0.0, 0.0, 0.0) for kind in ROUGE_NAMES}
    for hypothesis, reference in (("", "a b"), ("a b", ""), ("", ""), ("é", "é")):
        assert item(hypothesis, reference) == nothing
    assert item("", "", "") == nothing
    scores = rouge(["", ""], ["", ""], options=PLAIN)
    assert scores["rouge_l"]["f1"].score == scores["rouge_l"]["f1"].high == 0


def test_of_several_references_hits_and_counts_are_summed() -> None:
    found = item("a b c", "a b c d", "x y")["rouge_1"]
    assert found == triple(Hits(3, 6, 6))
    assert item("a", "a", "")["rouge_1"] == triple(
        Hits(1, 1, 2)
    )  # an empty one counts for precision


def test_the_best_reference_has_the_highest_recall() -> None:
    best = RougeOptions(best=True)
    found = item("a b c d", "a x", "a b c y y", "a b z z z", options=best)
    assert found["rouge_1"] == triple(Hits(3, 5, 4))
    assert found["rouge_2"] == triple(Hits(2, 4, 3))


def test_references_that_only_rounding_makes_equal() -> None:
    """The script compares recalls as it prints them, but those of ROUGE-L as they are."""
    # Their recalls, 300 / 601 and 301 / 603, are 0.49917 both.
    first, second = ([*["a"] * number, *["x"] * (number + 1)] for number in (300, 301))
    options, text = RougeOptions(best=True), " ".join(["a"] * 301)
    (item,) = rouge_items(
        [text], [" ".join(first)], [" ".join(second)], options=options
    )
    assert item["rouge_1"].precision < item["rouge_l"].precision == 1.0


def test_options_reach_the_words() -> None:
    stemmed = RougeOptions(
        stem=True, exceptions=RougeExceptions({"mice": "mouse"}, "12345678")
    )
    assert item("houses", "house")["rouge_1"].f1 == 0
    assert item("houses", "house", options=RougeOptions(stem=True))["rouge_1"].f1 == 1
    assert item("mice", "mouse", options=RougeOptions(stem=True))["rouge_1"].f1 == 0
    # A base form is not stemmed, the word mouse is, to mous: the script's ways.
    assert item("mice mouse", "mice", options=stemmed)["rouge_1"] == triple(
        Hits(1, 1, 2)
    )
    cut = RougeOptions(byte_limit=3)
    assert item("a b c", "a b d", options=cut)["rouge_1"].f1 == 1


def items(count: int) -> tuple[list[str], list[str]]:
    generator = random.Random(2)
    first, second = (
        [" ".join(generator.choices("abcdefgh", k=8)) for _ in range(count)]
        for _ in range(2)
    )
    return first, second


def leaves(scores: RougeScores) -> list[tuple[float, float, float]]:
    return [
        (scores[kind][part].score, scores[kind][part].low, scores[kind][part].high)
        for kind in ROUGE_NAMES
        for part in ROUGE_PARTS
    ]


def test_scores_are_plain_means_and_intervals_hold_them() -> None:
    texts = items(60)
    found = rouge_items(*texts, options=PLAIN)
    scores = mean_rouge(found, "signature", 500)
    for kind in ROUGE_NAMES:
        for part in ROUGE_PARTS:
            score, values = (
                scores[kind][part],
                [getattr(one[kind], part) for one in found],
            )
            assert score.score == pytest.approx(100 * sum(values) / 60)
            assert score.low < score.score < score.high
            # of a normal distribution 95% lie within 1.96 deviations
            half = 100 * 1.96 * float(np.std(values)) / 60**0.5
            assert score.high - score.score == pytest.approx(half, rel=0.25)
            assert score.score - score.low == pytest.approx(half, rel=0.25)


def test_equal_inputs_have_equal_intervals() -> None:
    found = rouge_items(*items(20), options=PLAIN)
    once, again, others = (mean_rouge(found, "signature", n) for n in (100, 100, 101))
    assert leaves(once) == leaves(again)
    assert leaves(once) != leaves(others)


def test_the_interval_of_a_single_item_has_no_width() -> None:
    score = rouge(["a b"], ["a b"], options=PLAIN)["rouge_2"]["recall"]
    assert score.low == score.score == score.high == 100


def test_the_signature_says_all_options() -> None:
    forms = RougeExceptions({}, "12345678")
    assert PLAIN.signature(1, 10).startswith(
        "ROUGE-1.5.5-equal|refs:1|multi:sum|bytes:all|stem:no|exceptions:no|mean:plain|bs:10|seed:"
    )
    all_of_them = RougeOptions(75, True, forms, best=True).signature(4, 1000)
    assert "|refs:4|multi:best|bytes:75|stem:yes|exceptions:12345678|" in all_of_them
    # Not stemmed.
    assert "exceptions:no" in RougeOptions(exceptions=forms).signature(1, 10)


def test_texts_of_unequal_number_are_refused() -> None:
    with pytest.raises(UserError, match="hypotheses: 2 lines, but reference 2 has 1"):
        rouge_items(["a", "b"], ["a", "b"], ["a"], options=PLAIN)
    with pytest.raises(UserError, match="no lines to score"):
        rouge_items([], [], options=PLAIN)


def test_exceptions_are_read_with_a_digest_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "exceptions.tsv"
    path.write_text("mice\tmouse\nwent\tgo\n")
    first = read_exceptions(path)
    assert first.bases == {"mice": "mouse", "went": "go"}
    path.write_text("mice\tmouse\nwent\twend\n")
    assert read_exceptions(path).digest != first.digest
    assert len(first.digest) == 8
    path.write_bytes(b"mice\tmouse\r\nwent\tgo\r\n")
    assert read_exceptions(path) == first
    path.write_text("mice\tmouse\nwent go\n")
    with pytest.raises(
        UserError, match=r"exceptions\.tsv:2: expected a word, a tab and its base"
    ):
        read_exceptions(path)
