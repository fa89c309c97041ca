"""Where sentences end on a line, and that no text stops the splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convs2s.errors import UserError
from convs2s.text.splitting import LONGEST_LINE, split_sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["The man sees two red cars.", "She reads the book."]),
        ("en", ["Dr. Smith paid 3.5 million, e.g. in No. 5.", "Did he?", "Yes!"]),
        ("en", ['He said "no."', "J. K. Rowling did not."]),
        ("fr", ["M. Dupont voit deux voitures.", "Elle lit le livre."]),
        ("fr", ["1. Un homme est là.", "Elle lit."]),
        ("de", ["Am 3. Oktober kam Dr. Müller z. B. nach Berlin.", "Er blieb."]),
        ("de_article", ["Am 3. Oktober kam Dr. Müller z. B. nach Berlin.", "Er blieb."]),
        ("ro", ["Ea citește.", "El doarme."]),
        ("a language unheard of", ["One.", "Two."]),
    ],
)
def test_each_sentence_is_found(language: str, sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences), language) == sentences
    assert split_sentences("\u2028 ".join(sentences) + "\r", language) == sentences


WITHOUT_LETTERS = ["Un homme est là.)", "1. Un homme est là.", 'Il dit "oui." ""', "Oui. 1999."]


@pytest.mark.parametrize(
    "line", ["", " ", "  One  sentence. ", "no end", "M. Dupont", ".", *WITHOUT_LETTERS]
)
def test_a_line_without_a_second_sentence_stays_as_it_is(line: str) -> None:
    assert split_sentences(line, "fr") == [line]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["en", "fr", "zh"]))
def test_no_word_is_lost(line: str, language: str) -> None:
    assert "".join(" ".join(split_sentences(line, language)).split()) == "".join(line.split())


def test_a_line_is_not_too_long() -> None:
    assert len(split_sentences("«" * LONGEST_LINE, "en")) == 1
    with pytest.raises(UserError, match=r"^line 7 has 65,537 characters, and 65,536 is the most"):
        split_sentences("a" * (LONGEST_LINE + 1), "en", 7)
