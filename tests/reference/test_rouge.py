"""ROUGE against the output of ROUGE-1.5.5.pl, item by item, and the stemmer word by word."""

from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.scoring.rouge_stem import RougeExceptions, rouge_stem
from tests.support.golden import DATA
from tests.support.rouge_rows import rouge_case

FOLDER = DATA / "rouge"
CASES = sorted(FOLDER.glob("duc[AB].*.tsv.gz"))


def stems() -> list[list[str]]:
    """Return each word with its stem, and with what the script's lookup and stemmer make of it."""
    return [line.split("\t") for line in read_lines(FOLDER / "stems.tsv.gz")]


@pytest.fixture(scope="module")
def exceptions() -> RougeExceptions:
    """The irregular forms among the words of stems.tsv, by what the script answers to them."""
    forms = {word: looked_up for word, stem, looked_up in stems() if looked_up != stem}
    # In the items, but not in stems.tsv.
    return RougeExceptions(forms | {"bigger": "big"}, "")


def test_every_case_is_tested() -> None:
    assert len(CASES) == 18
    assert len(stems()) == 5395


@pytest.mark.parametrize(
    "path", CASES, ids=lambda path: path.name.removesuffix(".tsv.gz")
)
def test_every_item_is_rouge_155s(path: Path, exceptions: RougeExceptions) -> None:
    case = rouge_case(path)
    assert len(case.printed) == 230
    assert case.ours(exceptions) == case.printed


def test_every_stem_is_rouge_155s() -> None:
    found = [[word, rouge_stem(word)] for word, *_ in stems()]
    assert found == [line[:2] for line in stems()]
