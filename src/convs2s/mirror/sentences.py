"""The sentences of the mirror: which corpus has how many of them."""

from itertools import cycle, islice

from convs2s.demo.corpus import read_demo_corpus
from convs2s.mirror.languages import FROM_FRENCH

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

SentencePairs = list[tuple[str, str]]
"""English sentences, each with what stands beside it."""


def draw_sentences() -> dict[str, SentencePairs]:
    """Return (English, French) pairs of the demo corpus by the mirror's corpora.

    No task has a sentence twice, and no sentence of a test set or a paper is anywhere else.
    """
    demo = read_demo_corpus()
    training = cycle(demo["train"][:SHARED_PAIRS])
    # Validation and test hold combinations of words that training text lacks.
    unseen = iter(demo["test"] + demo["valid"] + demo["train"][SHARED_PAIRS:])
    drawn = {name: list(islice(training, size)) for name, size in TRAINING_PAIRS.items()}
    for name, size in (TEST_PAIRS | PAPER_PAIRS).items():
        drawn[name] = list(islice(unseen, size))
    return drawn


def translated(pairs: SentencePairs, language: str) -> SentencePairs:
    """Return (English, French) pairs with the French side in another language."""
    return [(english, FROM_FRENCH[language](french)) for english, french in pairs]
