"""The sentences of the mirror: which corpus has how many of them."""

from convs2s.demo.corpus import drawing
from convs2s.demo.grammar import load_grammar
from convs2s.mirror.languages import FROM_FRENCH

MIRROR_SEED = 2014
TRAINING_PAIRS = {
    "europarl": 3000,
    "commoncrawl": 1500,
    "un": 1000,
    "news_commentary": 1500,
    "giga": 1500,
    "setimes": 1500,
    "back_translations": 2500,
    "multi30k": 2900,
    "gigaword": 1500,
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

SentencePairs = list[tuple[str, str]]
"""English sentences, each with what stands beside it."""


def draw_sentences() -> dict[str, SentencePairs]:
    """Return (English, French) pairs by corpus; no two have the same English sentence.

    Training text lacks the combinations that the demo corpus withholds from it; test sets hold some
    of them.
    """
    sentences = drawing(load_grammar(), MIRROR_SEED)
    drawn: dict[str, SentencePairs] = {}
    for split, sizes in (("train", TRAINING_PAIRS), ("test", TEST_PAIRS), ("train", PAPER_PAIRS)):
        for name, size in sizes.items():
            part = sentences.part(split, size)
            drawn[name] = [(one.english(), one.french()) for one in part]
    return drawn


def translated(pairs: SentencePairs, language: str) -> SentencePairs:
    """Return (English, French) pairs with the French side in another language."""
    return [(english, FROM_FRENCH[language](french)) for english, french in pairs]
