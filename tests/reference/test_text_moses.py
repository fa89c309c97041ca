"""Normalization, tokenization, detokenization and the filter against Moses of May 2017 (Perl).

The last lines of each text are hard ones, written by hand. ``detok`` is detokenizer.perl on the
output of ``tok-a``.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from convs2s.files.text import read_line_pairs, read_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.detokenizer import Detokenizer
from convs2s.text.moses import _CONTROLS, Tokenizer
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


def unescaped(tokenizer: Tokenizer, line: str) -> str:
    """Tokenize a line as ``tokenizer.perl -a -no-escape`` does."""
    words: str = tokenizer.tokenize(
        _CONTROLS.sub("", line),
        aggressive_dash_splits=True,
        escape=False,
        return_str=True,
    )
    return words


def tools(language: str) -> dict[str, Callable[[str], str]]:
    """Return what does the work of each kind of output."""
    aggressive = Tokenizer(language)
    return {
        "norm": Normalizer(language),
        "rmnp": remove_non_printing,
        "tok": Tokenizer(language, aggressive=False),
        "tok-a": aggressive,
        "tok-a-noesc": partial(unescaped, aggressive),
        "fairseq-train": Preparation("moses_train", language).prepare,
        "fairseq-test": Preparation("moses_test", language).prepare,
        "wmt16": Preparation("wmt16_plain", language).prepare,
        "detok": Detokenizer(language),
    }


@pytest.mark.parametrize("kind", tools("en"))
@pytest.mark.parametrize("language", ["en", "de", "fr", "ro"])
def test_text_is_equal_but_where_known(golden: Path, kind: str, language: str) -> None:
    folder = golden / "tok"
    tool = tools(language)[kind]
    name = "detok-of-tok-a" if kind == "detok" else kind
    path = plain_or_packed(folder, f"{name}.2017.{language}")
    if kind == "wmt16" and not path.exists():
        pytest.skip("its output is of real text alone, in two languages")
    wanted = list(read_lines(path))
    lines = golden_lines(folder, f"input.{language}")
    given = lines
    if kind == "detok":
        given = golden_lines(folder, f"tok-a.2017.{language}")
    rows = zip(lines, given, wanted, strict=True)
    unequal = [line for line, text, expected in rows if tool(text) != expected]
    nasty = golden_lines(folder, f"input.{language}.sections")[-1]
    first, _, last = nasty.partition("\t")[0].partition("-")
    assert int(last) - int(first) >= 189
    assert not set(unequal) & set(lines[: int(first) - 1])
    assert set(unequal) <= set(UNEQUAL)
    assert len(unequal) <= {"norm": 0, "rmnp": 0, "detok": 1}.get(kind, 12)


LANGUAGES = (
    "ar as bg bn ca cs da de el en es et fi fr ga gu he hi hr hu is it ja kn ko lt lv ml mni mr nl "
    "or pa pl pt ro ru sk sl sv ta tdt te th tr uk vi yue zh"
)
"""All that have a list of abbreviations, and some of those that get the English one."""


@pytest.mark.parametrize("language", LANGUAGES.split())
def test_every_language_is_tokenized_and_detokenized_as_by_moses(language: str) -> None:
    """Random and hand-written lines, their words back again, and random sequences of words."""
    tools: dict[str, Callable[[str], str]] = {
        "tokenizer": Tokenizer(language),
        "detokenizer": Detokenizer(language),
    }
    rows = map(json.loads, golden_lines(DATA / "tok", "languages.2017.jsonl"))
    mine = [row for row in rows if row[0] == language]
    assert len(mine) >= 20
    for _, tool, given, expected in mine:
        assert tools[tool](given) == expected


def test_where_the_scripts_spoil_words_ours_stay_whole() -> None:
    """docs/preparation.md names both: signs that join letters, and spaces in Korean."""
    assert Tokenizer("hi")("दिल्ली में मेज़.") == "दिल्ली में मेज़ ."
    assert Detokenizer("ko")("고양이가 물 을 .") == "고양이가 물 을."


def test_empty_words_and_new_currencies_are_detokenized_as_by_moses() -> None:
    """Each text is what detokenizer.perl of b8de7c352 prints, on Perl 5.36."""
    texts = {
        "&apos; a &apos;  . &apos;": "'a' . '",
        "a  @-@  b": "a - b",
        "a @-@  .": "a-.",
        "[  &apos; b": "[ 'b",
        "  (  a  )  ": "( a )",
        "₿ 5 und ⃀ 6": "₿5 und ⃀6",
        "$₿( 7": "$₿(7",
        "a   . b  ": "a . b",
    }
    assert {words: Detokenizer("de")(words) for words in texts} == texts


# ---- clean-corpus-n.perl ----

TARGETS = {"data": ("fr", 318), "golden": ("de", 644)}


def test_filter_is_clean_corpus_n(golden: Path, tmp_path: Path) -> None:
    folder = golden / "clean"
    language, pairs = TARGETS[golden.name]
    languages = ("en", language)
    sides = tmp_path / "en", tmp_path / language
    for name, maximum, ratio in (
        ("r1.5.1-175", 175, 1.5),
        ("r1.5.1-250", 250, 1.5),
        ("r9.1-80", 80, 9.0),
    ):
        report = tokenize_and_filter(
            read_line_pairs(
                *(plain_or_packed(folder, f"in.{one}") for one in languages)
            ),
            sides=sides,
            report=tmp_path / "report.json",
            minimum=1,
            maximum=maximum,
            ratio=ratio,
        )
        for path in sides:
            wanted = golden_lines(folder, f"out.{name}.{path.name}")
            assert list(read_lines(path)) == wanted
        kept = len(golden_lines(folder, f"out.{name}.lines"))
        assert (report["read"], report["kept"]) == (pairs, kept)
        assert sum(report["dropped"].values()) == pairs - kept
