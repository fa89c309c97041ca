"""Whatever a line holds, and in whatever order lines come: no word is lost, none differs."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from convs2s.files.text import write_lines
from convs2s.text.corpus_filter import tidy
from convs2s.text.preparation import Preparation
from convs2s.text.splitting import split_sentences
from convs2s.text.truecase import learn_truecaser


def test_equally_frequent_cases_do_not_depend_on_the_order_of_lines(
    tmp_path: Path,
) -> None:
    text, table = tmp_path / "text", tmp_path / "table"
    lines = ["x The the A a", "x the The", "x rot Rot ROT rot"]
    for order in (lines, lines[::-1]):
        write_lines(text, order)
        learn_truecaser(text=text, output=table)
        words = " ".join(table.read_text("utf-8").split()[2:])
        assert words == "a 1 A 1 rot 2 Rot 1 ROT 1 the 2 The 2"


def test_the_words_are_those_of_all_later_steps() -> None:
    """Whatever a line holds, blanks between its words are single spaces."""
    line = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
    for name in ("none", "stanford"):
        words = Preparation(name, "en").prepare(line)
        assert words.split() == words.split(" ") == tidy(words).split(" ")


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["en", "fr", "zh"]),
)
def test_no_word_is_lost_where_sentences_are_split(line: str, language: str) -> None:
    sentences = " ".join(split_sentences(line, language))
    assert "".join(sentences.split()) == "".join(line.split())


def test_a_long_line_is_split_in_blocks_that_end_at_blanks() -> None:
    """A book on one line ends no job of a million lines, and takes no time of the square."""
    sentences = ["He sees the two red cars.", "She reads."] * 5_000
    text = " ".join(sentences)
    found = split_sentences(text, "en")
    assert " ".join(found) == text
    blocks = len(text) // 2**16
    assert len(sentences) <= len(found) <= len(sentences) + blocks
    assert split_sentences("a" * 2**17, "en") == ["a" * 2**16] * 2
    assert "".join(split_sentences("«" * (2**16 + 1), "en")) == "«" * (2**16 + 1)
    numbers = "1. " * 30_000
    assert split_sentences(numbers, "en") == [numbers]
