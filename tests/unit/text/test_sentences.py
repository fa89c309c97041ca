"""The first sentence of an abstract, where full stops end it and where they do not."""

import pytest

from convs2s.text.sentences import first_sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "We parse text.",
        "Is it so?",
        "It rose by 3.5 points in version 2.0 of it.",
        "Some tasks, e.g. Chess or i.e. Go, are hard.",
        "Smith et al. (2015) and Jones et al. [3] disagree.",
        "As Fig. 3 and Eq. (2) show, cf. Sec. 4, it holds.",
        "The work of J. R. Smith and A.B. Jones is old.",
        "Prices, which are free in the U.S. Government sector, fell.",
        "Graphs of $n. K$ vertices are rare.",
        'He said "no."',
        "It works (as shown.)",
        "We study graphs in the class P.",
        "Nobody knows what comes after it...",
    ],
)
def test_where_it_ends(sentence: str) -> None:
    assert first_sentence(f"{sentence} We then go on. And on.") == sentence
    assert first_sentence(f" {sentence}  ") == sentence


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ""),
        ("no end", "no end"),
        ("It ends.with no blank", "It ends.with no blank"),
        ("It goes on. in small letters. Then", "It goes on. in small letters."),
        ("Line feeds\n  are blanks.\n  Next", "Line feeds are blanks."),
        ("It ends. 5G begins.", "It ends."),
        ("It ends. $n$ is a number.", "It ends."),
        ("It ends. (So it does.)", "It ends."),
        ("It costs $5. We pay. Then", "It costs $5."),
        ("Vitamin C. The rest", "Vitamin C."),
        ("Vitamin C. Smith found it. Then", "Vitamin C. Smith found it."),
    ],
)
def test_more_of_it(text: str, first: str) -> None:
    assert first_sentence(text) == first
