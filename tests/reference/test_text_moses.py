"""Normalization, tokenization and detokenization against Moses of May 2017 (Perl).

The last lines of each text are hard ones, written by hand. ``detok`` is detokenizer.perl on the
output of ``tok-a``.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.text.detokenizer import Detokenizer
from convs2s.text.moses import Tokenizer
from convs2s.text.normalize import Normalizer, remove_non_printing
from convs2s.text.preparation import Preparation
from tests.support.golden import DATA, golden_lines, plain_or_packed

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


Tool = Callable[[str], str]


def tools(language: str) -> dict[str, Tool]:
    """Return what does the work of each kind of output."""
    return {
        "norm": Normalizer(language),
        "rmnp": remove_non_printing,
        "tok": Tokenizer(language, aggressive=False),
        "tok-a": Tokenizer(language),
        "fairseq-train": Preparation("moses_train", language).prepare,
        "fairseq-test": Preparation("moses_test", language).prepare,
        "wmt16": Preparation("wmt16_plain", language).prepare,
        "detok-of-tok-a": Detokenizer(language),
    }


@pytest.fixture(params=["own", pytest.param("shared", marks=pytest.mark.shared)])
def folder(request: pytest.FixtureRequest) -> Path:
    """What Moses makes of this project's text, and of real text beside it."""
    if request.param == "own":
        return DATA / "tok"
    shared: Path = request.getfixturevalue("shared")
    return shared / "golden" / "tok"


OF_REAL_TEXT = {"fairseq-train", "fairseq-test", "wmt16", "detok-of-tok-a"}
"""What the other kinds are put together to."""


@pytest.mark.parametrize("language", ["en", "de", "fr", "ro"])
def test_text_is_equal_but_where_known(folder: Path, language: str) -> None:
    lines = golden_lines(folder, f"input.{language}")
    nasty = golden_lines(folder, f"input.{language}.sections")[-1]
    first, last = map(int, nasty.partition("\t")[0].split("-"))
    assert last - first >= 189
    for kind, tool in tools(language).items():
        path = plain_or_packed(folder, f"{kind}.2017.{language}")
        if folder.parent != DATA and kind not in OF_REAL_TEXT:
            continue
        if (
            kind == "wmt16" and not path.exists()
        ):  # it is of real text, in two languages
            continue
        given = lines
        if kind == "detok-of-tok-a":
            given = golden_lines(folder, f"tok-a.2017.{language}")
        rows = zip(lines, given, read_lines(path), strict=True)
        unequal = {line for line, text, expected in rows if tool(text) != expected}
        assert not unequal & set(lines[: first - 1]), kind
        assert unequal <= set(UNEQUAL), kind
        most = {"norm": 0, "rmnp": 0, "detok-of-tok-a": 1}.get(kind, 12)
        assert len(unequal) <= most, kind


def test_every_language_is_tokenized_and_detokenized_as_by_moses() -> None:
    """Random and hand-written lines, their words back again, and random sequences of words.

    The languages are all that have a list of abbreviations, and some of those that get the English
    one.
    """
    makers = {"tokenizer": Tokenizer, "detokenizer": Detokenizer}
    made: dict[tuple[str, str], Tool] = {}
    for row in golden_lines(DATA / "tok", "languages.2017.jsonl"):
        language, kind, given, expected = json.loads(row)
        if (language, kind) not in made:
            made[language, kind] = makers[kind](language)
        assert made[language, kind](given) == expected, language
    assert len(made) == 2 * 49


def test_where_the_scripts_spoil_words_ours_stay_whole() -> None:
    """docs/preparation.md names both: signs that join letters, and spaces in Korean."""
    assert Tokenizer("hi")("दिल्ली में मेज़.") == "दिल्ली में मेज़ ."
    assert Detokenizer("ko")("고양이가 물 을 .") == "고양이가 물 을."


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
    ],
)
def test_empty_words_and_new_currencies_are_detokenized_as_by_moses(
    words: str, text: str
) -> None:
    """Each text is what detokenizer.perl of b8de7c352 prints, on Perl 5.36."""
    assert Detokenizer("de")(words) == text
