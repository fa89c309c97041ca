"""Scores, their signatures and the errors on the way to them."""

import math
import subprocess
import sys
from collections import Counter

import pytest

from convs2s.errors import UserError
from convs2s.scoring.bleu import chrf, compare, detokenized_bleu, length_ratio, tokenized_bleu

REFERENCE = ["l&apos; homme voit deux voitures rouges .", "il pleut depuis ce matin à Lyon ."]
HYPOTHESIS = ["l&apos; homme voit deux voitures .", "il pleut depuis ce matin à Paris ."]


def test_scoring_loads_without_torch() -> None:
    modules = "bleu, evaluation, examples, summary_report"
    code = f"import sys; from convs2s.scoring import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_signatures_name_the_kind() -> None:
    tokenized = tokenized_bleu(HYPOTHESIS, REFERENCE).signature
    assert tokenized.startswith("nrefs:1|case:mixed|eff:no|tok:none|smooth:none|version:2.")
    detokenized = detokenized_bleu(HYPOTHESIS, REFERENCE).signature
    assert detokenized.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.")
    assert chrf(HYPOTHESIS, REFERENCE).signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0")
    two = tokenized_bleu(HYPOTHESIS, REFERENCE, REFERENCE, lowercase=True).signature
    assert two.startswith("nrefs:2|case:lc|")


def bleu_by_hand(hypotheses: list[str], references: list[str]) -> float:
    """Return BLEU of words as they are, up to four of them, not smoothed (Papineni et al. 2002)."""
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references, strict=True)]
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
    ratio = sum(len(others) for _, others in pairs) / sum(len(words) for words, _ in pairs)
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
    assert tokenized_bleu(text, reference).score != tokenized_bleu(split, reference).score


def test_identical_text_scores_100() -> None:
    for metric in (tokenized_bleu, detokenized_bleu, chrf):
        assert metric(REFERENCE, REFERENCE).score == pytest.approx(100)
    assert length_ratio(REFERENCE, REFERENCE).score == 1


def test_length_ratio_counts_words() -> None:
    assert length_ratio(HYPOTHESIS, REFERENCE).score == pytest.approx(14 / 15)


@pytest.mark.parametrize("metric", [tokenized_bleu, detokenized_bleu, chrf, length_ratio])
def test_empty_translations_score_0(metric: type) -> None:
    assert metric(["", ""], REFERENCE).score == 0


@pytest.mark.parametrize("metric", [tokenized_bleu, detokenized_bleu, chrf, length_ratio])
def test_counts_must_be_equal(metric: type) -> None:
    with pytest.raises(UserError, match=r"hypotheses: 2 lines, but the reference has 1"):
        metric(HYPOTHESIS, REFERENCE[:1])
    with pytest.raises(UserError, match=r"2 lines, but the reference 2 has 3"):
        metric(HYPOTHESIS, REFERENCE, [*REFERENCE, "x"])
    with pytest.raises(UserError, match=r"hypotheses: no lines to score"):
        metric([], [])


def test_compare_finds_a_difference_that_is_there() -> None:
    references = [f"the man number {i} sees two red cars in the street ." for i in range(40)]
    worse = [
        line.replace("two red cars", "a car") if len(line) % 2 else line for line in references
    ]
    result = compare(worse, references, references, samples=200)
    assert result.system.score == pytest.approx(100)
    assert result.baseline.score < result.system.score
    assert result.p_value < 0.05
    assert "|bs:200|seed:12345|" in f"|{result.system.signature}|"
    assert compare(worse, references, references, samples=200) == result


def test_compare_finds_none_between_equals() -> None:
    result = compare(HYPOTHESIS, HYPOTHESIS, REFERENCE, kind="detokenized", samples=50)
    assert result.p_value == 1
    assert "tok:13a" in result.baseline.signature


def test_compare_names_the_side_that_differs() -> None:
    with pytest.raises(UserError, match="system: 1 lines, but the reference has 2"):
        compare(HYPOTHESIS, HYPOTHESIS[:1], REFERENCE)
