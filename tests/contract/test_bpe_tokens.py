"""Tokens of words by BPE: glossaries, reserved words, limits. subword-nmt's are in reference/."""

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
from tests.support.refusals import rows

WORDS = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)]
CODES = learn_codes(WORDS, 10)


def test_learning_stops_where_no_pair_occurs_twice() -> None:
    assert learn_codes([("ab", 2), ("xy", 1)], 100) == "#version: 0.2\na b</w>\n"
    letters = learn_codes([("a", 3), ("b", 1)], 10)
    assert Bpe(letters).split("a b ab") == "a b a@@ b"


def test_pieces_are_joined_at_a_lines_end_too() -> None:
    assert join("low@@ est cut off at the l@@") == "lowest cut off at the l"


# A pattern, a word, and its parts. Groups are no parts of their own; counts may repeat what is
# short.
GLOSSARIES = r"""
USA => 1934USABUSA => 1934 USA B USA
(USA|UK) => xUSAy => x USA y
\\d+([.,]\\d+)* => x1.2.3y45 => x 1.2.3 y 45
([ab])\\1 => abba => a bb a
a* => baab => b aa b
(?r)b => abbab => a b b a b
[0-9a-f]{8}-(?:[0-9a-f]{4}-){3} => 0f8fad5b-d9cb-469f-a165- => 0f8fad5b-d9cb-469f-a165-
a{0,1000000000}# => aaa# => aaa#
\\{a{,3}\\}{1} => {aa} => {aa}
"""


def test_a_glossary_is_a_part_of_a_word() -> None:
    for pattern, word, parts in rows(GLOSSARIES):
        assert Glossaries([pattern]).isolate(word) == parts.split()
        assert Glossaries([pattern]).match(word) == (parts == word), pattern


def test_reserved_words_are_tokens_of_their_own() -> None:
    """subword-nmt would split them: ``<unk>`` of text that comes tokenized is no letters."""
    reserved = [(word, 100) for word in RESERVED_WORDS]
    assert learn_codes([*WORDS, *reserved], 10) == CODES
    bpe = Bpe(CODES, {"lo@@", "west"})
    assert bpe.split("lowest <unk> </s>") == "lo@@ west <unk> </s>"
    assert bpe.split(" <unk> lowest\r") == "<unk> lo@@ west"
    assert count_tokens([("<s>", 3)], bpe) == {"<s>": 3}


def test_merges_are_all_lines_but_the_version() -> None:
    for version in ("", "#version: 0.2\n"):
        codes = f"{version}a \u2028\na\u2028 b</w>\n"
        assert merges_of(codes) == ["a \u2028", "a\u2028 b</w>"]
        assert types_of_other_codes(codes, ["a\u2028@@", "a\u2028b"]) is None
        assert types_of_other_codes(codes, ["a", "b@@"]) is None
        assert types_of_other_codes(codes, ["a", "ab"]) == "1 of 1"
