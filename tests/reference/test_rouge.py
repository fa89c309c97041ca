"""ROUGE against the output of ROUGE-1.5.5.pl, item by item, and what few of its items show."""

import random
from pathlib import Path

import numpy as np
import pytest

from convs2s.files.text import read_lines
from convs2s.scoring.rouge import RougeOptions, mean_rouge, rouge, rouge_items
from convs2s.scoring.rouge_stem import RougeExceptions, read_exceptions, rouge_stem
from tests.support.golden import DATA, golden_lines

FOLDER = DATA / "rouge"
STEMS = [line.split("\t") for line in golden_lines(FOLDER, "stems.tsv")]
"""Each word with its stem, and with what the script's lookup makes of it."""


@pytest.fixture(scope="module")
def exceptions() -> RougeExceptions:
    """The irregular forms, by what the script answers to them."""
    forms = {word: looked_up for word, stem, looked_up in STEMS if looked_up != stem}
    # In the items, but not in stems.tsv.
    return RougeExceptions(forms | {"bigger": "big"}, "")


def test_every_item_is_rouge_155s(exceptions: RougeExceptions) -> None:
    paths = list(FOLDER.glob("duc?.*.tsv.gz"))
    assert len(paths) == 18
    for path in paths:
        first, *parts = path.name.split(".")
        references = 1 if "ref1" in parts else 4
        names = [f"duc.ref{number}.txt" for number in range(1, references + 1)]
        options = RougeOptions(
            byte_limit=75 if "b75" in parts else None,
            stem="m" in parts,
            exceptions=exceptions,
            best="best" in parts,
        )
        texts = [
            golden_lines(FOLDER, name) for name in (f"duc.hyp{first[-1]}.txt", *names)
        ]
        _, *printed = read_lines(path)
        found = [
            [f"{value:.5f}" for scores in item.values() for value in scores]
            for item in rouge_items(*texts, options=options)
        ]
        assert len(found) == 230
        assert found == [row.split("\t")[1:] for row in printed], path.name


def test_every_stem_is_rouge_155s() -> None:
    assert len(STEMS) == 5395
    for word, stem, _ in STEMS:
        assert rouge_stem(word) == stem


@pytest.mark.parametrize(
    ("text", "limit", "words"),
    [
        (
            "The Low-Cost -- flight's #1 <unk> É\u00a0x",
            None,
            "the low cost flight s 1 unk x",
        ),
        ("日本語", None, ""),
        ("aé b", 2, "a"),  # the first byte of é
        ("  abcdef", 4, "ab"),  # blanks count
    ],
)
def test_words_are_what_the_script_leaves_of_some_bytes(
    text: str, limit: int | None, words: str
) -> None:
    assert RougeOptions(limit).words(text) == words.split()


def test_an_exception_is_neither_stemmed_nor_of_three_letters(tmp_path: Path) -> None:
    path = tmp_path / "exceptions"
    path.write_bytes(b"men\tman\r\nmice\tmouse\r\n")
    forms = read_exceptions(path)
    options = RougeOptions(stem=True, exceptions=forms)
    assert options.words("Men was mice houses") == ["men", "was", "mouse", "hous"]
    path.write_text("men\tman\nmice\tmouse\n")
    assert read_exceptions(path) == forms
    path.write_text("men\tman\nmice\tmousy\n")
    assert read_exceptions(path).digest != forms.digest


def test_references_that_only_rounding_makes_equal() -> None:
    """The script compares recalls as it prints them, but those of ROUGE-L as they are."""
    # Their recalls, 300 / 601 and 301 / 603, are 0.49917 both.
    first = "a " * 300 + "x " * 301
    second = "a " * 301 + "x " * 302
    options = RougeOptions(best=True)
    (item,) = rouge_items(["a " * 301], [first], [second], options=options)
    assert item["rouge_1"].precision < item["rouge_l"].precision == 1.0


def test_scores_are_plain_means_and_intervals_hold_them() -> None:
    generator = random.Random(2)
    lines = [" ".join(generator.choices("abcdefgh", k=8)) for _ in range(120)]
    items = rouge_items(lines[:60], lines[60:], options=RougeOptions())
    for kind, parts in mean_rouge(items, "signature", 500).items():
        for part, score in parts.items():
            values = np.array([100 * getattr(item[kind], part) for item in items])
            assert score.score == pytest.approx(values.mean())
            # Of a normal distribution, 95% lie within 1.96 deviations.
            half = 1.96 * values.std() / 60**0.5
            ends = [score.high - score.score, score.score - score.low]
            assert ends == pytest.approx([half, half], rel=0.25)


def test_an_item_alone_has_no_interval_and_one_without_words_no_score() -> None:
    for text, expected in {"a b": 100, "é": 0}.items():
        score = rouge([text], [text], options=RougeOptions())["rouge_2"]["recall"]
        assert score.low == score.score == score.high == expected
