"""Where sentences end on a line, and that no text stops the splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convs2s.text.splitting import split_sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["The man sees two red cars.", "She reads the book."]),
        ("en", ["Dr. Smith paid 3.5 million, e.g. in No. 5.", "Did he?", "Yes!"]),
        ("en", ['He said "no."', "J. K. Rowling did not."]),
        ("fr", ["M. Dupont voit deux voitures.", "Elle lit le livre."]),
        ("fr", ["1. Un homme est là.", "Elle lit."]),
        ("de", ["Am 3. Oktober kam Dr. Müller z. B. nach Berlin.", "Er blieb."]),
        (
            "de_article",
            ["Am 3. Oktober kam Dr. Müller z. B. nach Berlin.", "Er blieb."],
        ),
        ("ro", ["Ea citește.", "El doarme."]),
        ("a language unheard of", ["One.", "Two."]),
    ],
)
def test_each_sentence_is_found(language: str, sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), language) == sentences
    assert split_sentences("\u2028 ".join(sentences) + "\r", language) == sentences


WITHOUT_LETTERS = [
    "Un homme est là.)",
    "1. Un homme est là.",
    'Il dit "oui." ""',
    "Oui. 1999.",
]


@pytest.mark.parametrize(
    "line", ["", " ", "  One  sentence. ", "no end", "M. Dupont", ".", *WITHOUT_LETTERS]
)
def test_a_line_without_a_second_sentence_stays_as_it_is(line: str) -> None:
    assert split_sentences(line, "fr") == [line]


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["en", "fr", "zh"]),
)
def test_no_word_is_lost(line: str, language: str) -> None:
    assert "".join(" ".join(split_sentences(line, language)).split()) == "".join(
        line.split()
    )


def test_a_long_line_is_split_in_blocks_that_end_at_blanks() -> None:
    """A book on one line ends no job of a million lines, and takes no time of the square."""
    sentences = ["He sees the two red cars.", "She reads."] * 20_000
    found = split_sentences(" ".join(sentences), "en")
    blocks = len(" ".join(sentences)) // 2**16
    assert " ".join(found) == " ".join(sentences)
    assert len(sentences) <= len(found) <= len(sentences) + blocks
    assert split_sentences("a" * 2**17, "en") == ["a" * 2**16] * 2
    assert "".join(split_sentences("«" * (2**17 + 1), "en")) == "«" * (2**17 + 1)
    numbers = "1. " * 100_000
    assert split_sentences(numbers, "en") == [numbers]
