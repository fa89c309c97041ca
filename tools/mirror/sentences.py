"""The text of the mirror: which corpus has how many sentences, in which languages, what is odd.

German and Romanian are French, letter by letter: neither language, but each French word gives the
same word each time, which is what a model can learn, and each language's own letters occur.
"""

import re
from itertools import cycle, islice

from convs2s.demo.corpus import read_demo_corpus

SHARED_PAIRS = 8500
"""Pairs of the demo's training text that the training corpora take, one after the other, again and
again: the first five, and Romanian's (``europarl`` and the last two), share none of them."""

TRAINING_PAIRS = {
    "europarl": 3000,
    "commoncrawl": 1500,
    "un": 1000,
    "news_commentary": 1500,
    "giga": 1500,
    "multi30k": 2900,
    "gigaword": 1500,
    "setimes": 1500,
    "back_translations": 2500,
}
"""A corpus that several language pairs share has the same English sentences in each."""

TEST_PAIRS = {
    "newstest2012": 300,
    "newstest2013": 300,
    "newstest2014": 300,
    "newstest2015": 217,
    "newstest2016": 200,
    "newsdev2016": 200,
    "newsdiscussdev2015": 150,
    "val": 101,
    "test_2016_flickr": 100,
    "test_2017_flickr": 100,
    "gigaword_valid": 150,
    "gigaword_test": 150,
    "duc2004": 100,
}
"""Where the real set is one of WMT's or Multi30k's, a tenth of its size."""

PAPER_PAIRS = {"arxiv": 1800, "scitldr": 60}
"""Sentences of abstracts, and of test papers with their summaries."""

PLANTED = {"empty": 4, "too_long": 6, "ratio": 40, "long_word": 2}
"""Reason to drop -> the pairs that are planted for it in each corpus that has faults."""

ODD_CHARACTERS = {
    "NUL": "\0",
    "carriage return": "\r",
    "byte order mark": "\ufeff",
    "zero-width space": "\u200b",
    "line separator": "\u2028",
    "next line": "\x85",
    "no-break space": "\xa0",
    "ideographic space": "\u3000",
    "soft hyphen": "\xad",
    "separator of factors": " ||| ",
}
"""Each stands in a pair of its own, which cleaning keeps."""

MOST_WORDS = 250  # of all tasks' limits
LONG_WORD = "w" * 1100

# English sentences, each with what stands beside it.
SentencePairs = list[tuple[str, str]]

LETTERS = {
    "de": {
        "ç": "ß",
        "é": "ä",
        "è": "ee",
        "ê": "eh",
        "ô": "ö",
        "û": "ü",
        "c": "k",
        "v": "w",
    },
    "ro": {
        "ç": "ț",
        "x": "ț",
        "j": "ș",
        "é": "ă",
        "è": "ă",
        "ê": "â",
        "ô": "o",
        "û": "u",
    },
}
"""Letters of French words, but of names, and what replaces them in a language."""

CEDILLAS = str.maketrans("ȘșȚț", "ŞşŢţ")
"""Romanian's s and t with a comma -> with a cedilla, as text older than the right letters has."""


def draw_sentences() -> dict[str, SentencePairs]:
    """Return (English, French) pairs of the demo corpus by the mirror's corpora.

    No task has a sentence twice, and no sentence of a test set or a paper is anywhere else.
    """
    demo = read_demo_corpus()
    training = cycle(demo["train"][:SHARED_PAIRS])
    # Validation and test hold combinations of words that training text lacks.
    unseen = iter(demo["test"] + demo["valid"] + demo["train"][SHARED_PAIRS:])
    drawn = {
        name: list(islice(training, size)) for name, size in TRAINING_PAIRS.items()
    }
    for name, size in (TEST_PAIRS | PAPER_PAIRS).items():
        drawn[name] = list(islice(unseen, size))
    return drawn


def translated(pairs: SentencePairs, language: str) -> SentencePairs:
    """Return (English, French) pairs with the French side in another language."""
    return [(english, respelled(french, language)) for english, french in pairs]


def respelled(french: str, language: str) -> str:
    """Return a French sentence as text that looks like German (``de``) or Romanian (``ro``)."""
    if language == "fr":
        return french
    letters = str.maketrans(LETTERS[language])
    # What opens with a capital letter may be a name, which is to be copied.
    small_words = r"(?<![^\W\d_])[a-zà-ÿœ]+"
    sentence = re.sub(small_words, lambda word: word[0].translate(letters), french)
    # French has blanks within long numbers and before punctuation.
    return re.sub(r" (?=[;:?!])", "", re.sub(r"(?<=\d) (?=\d{3}\b)", ".", sentence))


def with_faults(pairs: SentencePairs) -> SentencePairs:
    """Return pairs with faults of real corpora among them: what cleaning drops, or repairs.

    The text of the faults is that of the pairs, none of which is missing. The first line of the
    English side opens with a byte order mark, as a file of Windows does.
    """
    (source, target), *rest = pairs
    many = MOST_WORDS // 3  # every sentence has at least four words
    planted = [("", target), (source, ""), ("", ""), (" \xa0 ", target)]
    for number in range(PLANTED["too_long"]):
        english, other = zip(*pairs[number * many : (number + 1) * many], strict=True)
        planted.append((" ".join(english), " ".join(other)))
    planted += [
        (left, f"{right} {right} {right}") for left, right in pairs[: PLANTED["ratio"]]
    ]
    planted += [
        (f"{left} {LONG_WORD}", f"{right} {LONG_WORD}") for left, right in pairs[:2]
    ]
    for (left, right), character in zip(pairs, ODD_CHARACTERS.values(), strict=False):
        # The odd character stands between the first two words of each side.
        odd = f" {character}"
        planted.append((left.replace(" ", odd, 1), right.replace(" ", odd, 1)))
    step = len(rest) // (len(planted) + 1)
    result = [(ODD_CHARACTERS["byte order mark"] + source, target)]
    for number, pair in enumerate(planted):
        result += [*rest[number * step : (number + 1) * step], pair]
    return result + rest[len(planted) * step :]


def as_news(pairs: SentencePairs) -> SentencePairs:
    """Return pairs, some of which have quotes, dashes and blanks as newspapers set them."""
    styled = ((number % 25, *pair) for number, pair in enumerate(pairs))
    return [
        (typeset(left, style), typeset(right, style)) for style, left, right in styled
    ]


def typeset(line: str, style: int) -> str:
    """Return a line in one of five styles; further ones leave it as it is."""
    styles = (
        f"“{line}”",
        line.replace("'", "’"),
        f"{line} – Anna & Paul",
        line.replace(" ", " \u200b", 1),
        line.replace(" ", "\xa0", 1),
    )
    return styles[style] if style < len(styles) else line
