"""ROUGE against the output of ROUGE-1.5.5.pl, item by item, and what few of its items show."""

import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from convs2s.files.text import read_lines
from convs2s.scoring.rouge import RougeOptions, mean_rouge, rouge, rouge_items
from convs2s.scoring.rouge_stem import RougeExceptions, read_exceptions, rouge_stem
from tests.support.golden import golden_lines

STEMS = {"data": ("stems.tsv.gz", 5395), "golden": ("stems.rouge155.tsv", 53166)}
CASES = {"data": ("duc*.tsv.gz", 18), "golden": ("*.out", 12)}
_LINE = re.compile(r"X ROUGE-[12L] Eval (\d+)\.X R:(\S+) P:(\S+) F:(\S+)")


def stems(golden: Path) -> list[list[str]]:
    """Return each word with its stem; ours also has what the script's lookup makes of it."""
    name, count = STEMS[golden.name]
    rows = [line.split("\t") for line in read_lines(golden / "rouge" / name)]
    assert len(rows) == count
    return rows


def exceptions(golden: Path) -> RougeExceptions:
    """Return the irregular forms, in ours by what the script answers to them."""
    if golden.name != "data":
        return read_exceptions(golden / "rouge/wordnet20.exceptions.tsv")
    irregular = {word: form for word, stem, form in stems(golden) if form != stem}
    # In the items, but not in stems.tsv.
    return RougeExceptions(irregular | {"bigger": "big"}, "")


def printed(path: Path) -> list[list[str]]:
    """Return recall, precision and F of each item by ROUGE-1, 2 and L."""
    if path.suffix == ".gz":
        _, *rows = read_lines(path)
        return [row.split("\t")[1:] for row in rows]
    items: defaultdict[int, list[str]] = defaultdict(list)
    for line in read_lines(path):
        if match := _LINE.fullmatch(line):
            items[int(match[1])] += match.groups()[1:]
    return [items[number] for number in sorted(items)]


def test_every_item_is_rouge_155s(golden: Path) -> None:
    pattern, count = CASES[golden.name]
    paths = list((golden / "rouge").glob(pattern))
    assert len(paths) == count
    forms = exceptions(golden)
    for path in paths:
        first, *parts = path.name.split(".")
        corpus, system = first[:-1], first[-1]
        references = ["giga.ref.txt"]
        if corpus == "duc":
            last = 1 if "ref1" in parts else 4
            references = [f"duc.ref{number}.txt" for number in range(1, last + 1)]
        names = [f"{corpus}.hyp{system}.txt", *references]
        options = RougeOptions(
            byte_limit=75 if "b75" in parts else None,
            stem="m" in parts,
            exceptions=forms,
            best="best" in parts,
        )
        texts = [golden_lines(path.parent, name) for name in names]
        found = [
            [f"{value:.5f}" for scores in item.values() for value in scores]
            for item in rouge_items(*texts, options=options)
        ]
        assert len(found) > 100
        assert found == printed(path), path.name


def test_every_stem_is_rouge_155s(golden: Path) -> None:
    for word, stem, *_ in stems(golden):
        assert rouge_stem(word) == stem


def test_words_are_what_the_script_leaves_of_some_bytes() -> None:
    for text, limit, words in (
        (
            "The Low-Cost -- flight's #1 <unk> É\u00a0x",
            None,
            "the low cost flight s 1 unk x",
        ),
        ("日本語", None, ""),
        ("aé b", 2, "a"),  # the first byte of é
        ("aé bc", 5, "a b"),
        ("  abcdef", 4, "ab"),  # blanks count
    ):
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
    assert "|exceptions:2d89bd48|" in options.signature(2, 10)


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
            values = [getattr(item[kind], part) for item in items]
            assert score.score == pytest.approx(100 * sum(values) / 60)
            # Of a normal distribution, 95% lie within 1.96 deviations.
            half = 100 * 1.96 * float(np.std(values)) / 60**0.5
            assert score.high - score.score == pytest.approx(half, rel=0.25)
            assert score.score - score.low == pytest.approx(half, rel=0.25)


def test_an_item_alone_has_no_interval_and_one_without_words_no_score() -> None:
    for text, expected in {"a b": 100, "é": 0}.items():
        score = rouge([text], [text], options=RougeOptions())["rouge_2"]["recall"]
        assert score.low == score.score == score.high == expected
