"""What the filter drops and counts, and what hazardous text becomes: docs/preparation.md."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.data.corpus import RawText, extract_corpus
from convs2s.files.text import NO_MARK, read_line_pairs, write_lines
from convs2s.text.corpus_filter import FilterReport, tokenize_and_filter
from convs2s.text.preparation import Preparation, tokenize_file
from tests.conftest import Terminal
from tests.support.archives import FilesBelow
from tests.support.refusals import rows

pytestmark = pytest.mark.usefixtures("in_folder")

REPORT = Path("report.json")


def clean(
    pairs: list[tuple[str, str]], **changes: Any
) -> tuple[list[tuple[str, str]], FilterReport]:
    """Return the pairs that are left, and the report."""
    settings = {"minimum": 2, "maximum": 4, "ratio": 1.5, **changes}
    sides = Path("out.en"), Path("out.fr")
    report = tokenize_and_filter(pairs, sides=sides, report=REPORT, **settings)
    assert json.loads(REPORT.read_text()) == report
    return list(read_line_pairs(*sides)), report


def test_every_pair_is_kept_or_counted() -> None:
    kept = [
        ("a b", "c d"),
        ("a b", "a " + "x" * 1000),
        ("a b c d", "a b c d"),
        ("aaaaaa bbb", "a b c"),
    ]
    dropped = [
        ("", "an empty side"),
        ("a b", " \u2028 "),
        ("one", "two words"),
        ("a b c d e", "a b c d"),
        ("a b", "a b c d"),
        ("a b", "a " + "x" * 2_000_000),
    ]
    left, report = clean([*dropped, *kept, ("a | b", "c  \u00a0d")])
    assert left == [*kept, ("a b", "c d")]
    assert report == yaml.safe_load("""
        read: 11
        kept: 5
        dropped: {empty: 2, too_long: 1, too_short: 1, ratio: 1, long_word: 1, overlap: 0}
        settings: preparation none, minimum 2, maximum 4, ratio 1.5
    """)
    _, any_ratio = clean([("a b", "a b c d")], ratio=None)
    assert any_ratio["kept"] == 1


def test_lines_are_prepared_before_they_are_judged() -> None:
    """Bars stay where text comes tokenized."""
    line = "a || b |c| <unk> #"
    for name, kept, empty in (("none", line, 0), ("stanford", "a b c <unk> #", 1)):
        prepare = Preparation(name, "en").prepare
        pairs = [(line, line), ("| | |", "a b c")]
        left, report = clean(pairs, maximum=6, prepare=(prepare, prepare))
        assert left[0] == (kept, kept)
        assert report["dropped"]["empty"] == empty


LONG = "x" * 1_000_000
# A line; its words as training text, or why the filter drops its pair; its words in a test set.
HAZARDS = [
    *rows(r"""
a\0b => a b => ab
a\rb => ab => a b
a b\r => a b => a b
a\u2028b => a b => a b
a\x85b => a b => a b
\ufeffa b => a b => a b
a \ufeff b => a b => a \ufeff b
=> empty =>
\x20\t\x20 => empty =>
a ||| b => a &#124; &#124; &#124; b => a &#124; &#124; &#124; b
"""),
    [LONG, "long_word", LONG],
]
OTHERS = ["the house", "the car"]
TARGETS = ["un", "deux", "trois"]


def test_what_hazardous_text_becomes_in_a_corpus() -> None:
    raw = Path("raw.en.zst"), Path("raw.fr.zst")
    words = Path("tok.en.zst"), Path("tok.fr.zst")
    text = RawText([("own.en", "own.fr")], FilesBelow(Path()))
    write_lines("own.fr", TARGETS)

    def tokenized(name: str) -> list[tuple[str, str]]:
        for side, output, language in zip(raw, words, ("en", "fr"), strict=True):
            tokenize_file(raw=side, output=output, name=name, language=language)
        return list(read_line_pairs(*words, mark=NO_MARK))

    for line, train, test in HAZARDS:
        write_lines("own.en", [line, *OTHERS])
        extract_corpus(text, output=raw)
        pairs = list(zip([test, *OTHERS], TARGETS, strict=True))
        assert tokenized("moses_test") == pairs, line[:9]
        prepared = tokenized("moses_train")
        left, report = clean(prepared, minimum=1, maximum=175, ratio=None)
        dropped = [reason for reason, count in report["dropped"].items() if count]
        kept = [] if dropped == [train] else [(train, "un")]
        assert left == [*kept, *pairs[1:]], line[:9]


def test_what_it_becomes_where_it_is_translated(model: Path, run: Terminal) -> None:
    for line, _, test in HAZARDS:
        said = run("translate", model, "--json", text=f"{line}\nthe house\n".encode())
        answers = map(json.loads, said.split("\n")[:-1])
        tokens = [answer["source_tokens"] for answer in answers]
        assert tokens == [test.split(), ["the", "house"]], line[:9]
