"""BPE on a toy corpus; tests/reference/test_text_bpe.py compares with subword-nmt's commands."""

import io
from collections import Counter
from pathlib import Path

import pytest
from subword_nmt.apply_bpe import BPE

from convs2s.errors import UserError
from convs2s.text import bpe as module
from convs2s.text.bpe import (
    Bpe,
    Glossaries,
    count_tokens,
    join,
    learn_codes,
    merges_of,
    types_of_other_codes,
)
from convs2s.text.reserved_words import RESERVED_WORDS

WORDS = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3})


def test_learning_is_silent_and_does_not_depend_on_order(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    codes = learn_codes(WORDS.items(), 10)
    assert codes.startswith("#version: 0.2\ns t</w>\ne st</w>\n")
    assert learn_codes(reversed(WORDS.items()), 10) == codes
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_learning_stops_where_no_pair_occurs_twice() -> None:
    assert learn_codes([("ab", 2), ("xy", 1)], 100) == "#version: 0.2\na b</w>\n"


def test_words_of_one_letter_need_no_codes() -> None:
    codes = learn_codes([("a", 3), ("b", 1)], 10)
    assert Bpe(codes).split("a b ab") == "a b a@@ b"


def test_no_words_is_an_error() -> None:
    with pytest.raises(UserError, match="holds no word"):
        learn_codes([], 10)


def test_split_and_join() -> None:
    bpe = Bpe(learn_codes(WORDS.items(), 10))
    assert bpe.split("lowest  newer") == "lo@@ west ne@@ w@@ e@@ r"
    assert bpe.split("") == ""
    assert join("low@@ est new@@ est") == "lowest newest"
    assert join("cut off at the l@@") == "cut off at the l"


def test_vocabulary_and_glossaries() -> None:
    codes = learn_codes(WORDS.items(), 10)
    assert Bpe(codes, {"lo@@", "w@@", "est"}).split("lowest") == "lo@@ w@@ est"
    assert Bpe(codes, glossaries=["lowest"]).split("lowest") == "lowest"
    with pytest.raises(UserError, match="lower the vocabulary's threshold"):
        Bpe(codes, set())


def test_glossaries_are_parts_of_words() -> None:
    bpe = Bpe(learn_codes(WORDS.items(), 10), glossaries=["USA", "[0-9]+"])
    assert bpe.split("1934USABUSA") == "1934@@ USA@@ B@@ USA"
    assert bpe.split("lowUSA low12er USA") == "low@@ USA low@@ 12@@ e@@ r USA"


@pytest.mark.parametrize(
    ("pattern", "word", "parts"),
    [
        ("(USA|UK)", "xUSAy", ["x", "USA", "y"]),
        (r"\d+([.,]\d+)*", "x1.2.3y45", ["x", "1.2.3", "y", "45"]),
        (r"([ab])\1", "abba", ["a", "bb", "a"]),
        (r"(?P<one>[ab])x?", "caxc", ["c", "ax", "c"]),
        ("a*", "baab", ["b", "aa", "b"]),
        ("(?r)b", "abbab", ["a", "b", "b", "a", "b"]),
    ],
)
def test_groups_of_a_glossary_are_no_parts(
    pattern: str, word: str, parts: list[str]
) -> None:
    assert Glossaries([pattern]).isolate(word) == parts


def test_a_glossary_without_an_end_is_given_up() -> None:
    bpe = Bpe(learn_codes(WORDS.items(), 10), glossaries=[r"(?:\w|\w\w)+[^\w]"])
    with pytest.raises(
        UserError, match=r"glossaries: .* takes more than 1 s on 'loooo"
    ):
        bpe.split("l" + 60 * "o")


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000000}",
        "(?:(?:a{999}){999}){999,}",
        "(?x)a{ 1 000 000 000}",
        "(?x)a{1# }\n000000000}",
    ],
)
def test_a_glossary_that_takes_all_memory_is_never_compiled(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.text.bpe.regex.compile", None)
    with pytest.raises(
        UserError, match=r"^glossaries: '.* is too large: .*: write smaller counts"
    ):
        Glossaries([pattern])


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        (
            "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
        ),
        ("a{0,1000000000}#", "aaa#"),
        (r"\{a{,3}\}{1}", "{aa}"),
    ],
)
def test_a_glossary_may_repeat(pattern: str, word: str) -> None:
    assert Glossaries([pattern]).match(word)


def test_a_glossary_that_is_no_pattern_is_an_error() -> None:
    message = r"glossaries: '\(' is not a regular expression: missing \)"
    with pytest.raises(UserError, match=message):
        Bpe(learn_codes(WORDS.items(), 10), glossaries=["("])


def test_broken_codes_are_an_error_with_the_line() -> None:
    with pytest.raises(
        UserError, match=r"BPE codes, line 3: expected two tokens .* found 'x'"
    ):
        Bpe("#version: 0.2\na b\nx\n")


@pytest.mark.parametrize("version", ["", "#version: 0.1\n", "#version: 0.2\n"])
def test_merges_are_all_lines_but_the_version(version: str) -> None:
    codes = f"{version}a \u2028\na\u2028 b</w>\n"
    assert merges_of(codes) == ["a \u2028", "a\u2028 b</w>"]
    assert types_of_other_codes(codes, ["a\u2028@@", "a\u2028b"]) is None


def test_a_full_cache_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_WORDS", 2)
    bpe = Bpe(learn_codes(WORDS.items(), 10))
    line = "low lower newest lowest"
    assert bpe.split(line) == bpe.split(line) == "low lo@@ w@@ e@@ r newest lo@@ west"


def test_reserved_words_are_tokens_of_their_own() -> None:
    """subword-nmt would split them: ``<unk>`` of text that comes tokenized is no letters."""
    reserved = [(word, 100) for word in RESERVED_WORDS]
    assert learn_codes([*WORDS.items(), *reserved], 10) == learn_codes(
        WORDS.items(), 10
    )
    bpe = Bpe(learn_codes(WORDS.items(), 10), {"lo@@", "west"})
    assert bpe.split("lowest <unk> </s>") == "lo@@ west <unk> </s>"
    assert bpe.split(" <unk> lowest\r") == "<unk> lo@@ west"
    assert bpe.tokens("<pad>") == ["<pad>"]
    assert count_tokens([("<s>", 3)], bpe) == {"<s>": 3}
    with pytest.raises(UserError, match="holds no word"):
        learn_codes(reserved, 10)


@pytest.mark.parametrize(
    "line", ["", " ", " \r\n", "  low  lower ", "low\r", "\nlow", "\tlow \r low"]
)
def test_words_are_those_of_subword_nmt(line: str) -> None:
    codes = learn_codes(WORDS.items(), 10)
    wanted = BPE(io.StringIO(codes)).process_line(line)
    assert Bpe(codes).split(line) == wanted.strip("\r\n ")


def test_counts() -> None:
    codes = learn_codes([("low", 2), ("x", 1)], 10)
    tokens = count_tokens([("low", 2), ("lower", 1)], Bpe(codes))
    assert tokens == {"low": 2, "l@@": 1, "o@@": 1, "w@@": 1, "e@@": 1, "r": 1}
