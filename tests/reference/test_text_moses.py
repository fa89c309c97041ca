"""Normalization, tokenization and detokenization against Moses of May 2017 (Perl).

``moses/hand-written.LANGUAGE.jsonl`` holds hand-written hard lines with the original tools' output:
``input``, then each other text under the kinds of output that it is; a kind that is not named gave
the input back. ``detok`` is detokenizer.perl on the output of ``tok-a``.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from convs2s.text.moses import Detokenizer
from tests.support.golden import DATA, golden_lines
from tests.support.moses import KINDS, LANGUAGES, assert_real_text_is_equal, our_tool

BLANK = "Perl prints a line of blanks as it is; here it has no word, and the filter drops it"
CHINESE = "sacremoses' table of letters lacks the Chinese and Korean ones, so that each is a word"
VIRAMA = "sacremoses takes the signs that join Indic letters for letters; Perl's table does not"
UNEQUAL = {
    "DOTMULTI DOTDOTMULTI.": "the text holds Moses' own marker for several full stops",
    "日本語のテキスト。「引用」、（括弧）": CHINESE,
    "中文，测试。！？": CHINESE,
    "한국어 텍스트.": CHINESE,
    "हिन्दी में नमस्ते।": VIRAMA,
    "தமிழ் மொழி": VIRAMA,
    "ℕ ℝ 𝒜𝓑 Ａｂｃ１２３": "sacremoses' table of letters lacks mathematical ones beyond U+FFFF",
    "\r": BLANK,
    "   ": BLANK,
    "\t": BLANK,
    "\xa0": BLANK,
    "\u3000": BLANK,
    "\x01": BLANK + " (removal of non-printing characters left a space of it)",
}
"""The hand-written lines on which ours may differ, and why."""


def hand_written(root: Path, language: str) -> Iterator[dict[str, str]]:
    """Yield the input and every kind of output of each hand-written line."""
    path = root / "tests" / "reference" / "moses" / f"hand-written.{language}.jsonl"
    for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        outputs = dict.fromkeys(KINDS, record["input"])
        for kinds, text in record.items():
            outputs.update(dict.fromkeys(kinds.split(), text))
        yield outputs


@pytest.mark.parametrize(("kind", "language"), [*product(KINDS, ["en", "fr"])])
def test_demo_text_is_equal(kind: str, language: str) -> None:
    assert_real_text_is_equal(DATA / "tok", kind, language, least=1000)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_hand_written_lines_differ_only_where_known(
    root: Path, kind: str, language: str
) -> None:
    process = our_tool(kind, language)
    given = "tok-a" if kind == "detok" else "input"
    lines = list(hand_written(root, language))
    unequal = {line["input"] for line in lines if process(line[given]) != line[kind]}
    assert len(lines) >= 190
    assert unequal <= set(UNEQUAL)
    assert len(unequal) <= {"norm": 0, "rmnp": 0, "detok": 5}.get(kind, 12)


@pytest.mark.parametrize("language", LANGUAGES)
def test_hand_written_lines_are_the_golden_ones(root: Path, language: str) -> None:
    names = {kind: f"{kind}.2017" for kind in KINDS}
    names |= {"input": "input", "detok": "detok-of-tok-a.2017"}
    lines = list(hand_written(root, language))
    for kind, name in names.items():
        original = golden_lines(DATA / "tok", f"{name}.{language}")
        assert [line[kind] for line in lines] == original[-len(lines) :]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("&apos; a &apos;  . &apos;", "'a' . '"),
        ("a  @-@  b", "a - b"),
        ("a @-@  .", "a-."),
        ("[  &apos; b", "[ 'b"),
        ("  (  a  )  ", "( a )"),
        ("₿ 5 und ⃀ 6", "₿5 und ⃀6"),
        ("$₿( 7", "$₿(7"),
        ("a   . b  ", "a . b"),
    ],
)
def test_empty_words_and_new_currencies_are_detokenized_as_by_moses(
    words: str, text: str
) -> None:
    """Each text is what detokenizer.perl of b8de7c352 prints, on Perl 5.36."""
    assert Detokenizer("de")(words) == text
