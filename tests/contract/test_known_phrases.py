"""This project's phrases are in words that the vocabularies of the scales have."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.data.vocabulary import most_frequent
from convs2s.demo.corpus import read_demo_corpus
from convs2s.files.text import read_lines
from convs2s.text.preparation import Preparation
from mirror.sentences import draw_sentences

SIXTEEN = ("sixteen_caption_word_orders", "sixteen_caption_voices")
OWN = ("caption_word_order", "caption_voice", *SIXTEEN)
"""Phrases of the LSTM's figure 2 that are this project's own."""


OF_THE_DEMO = (
    "demo_word_order",
    "demo_voice",
    "sixteen_demo_word_orders",
    "sixteen_demo_voices",
)


def unknown_words(settings: Settings, text: Iterable[str]) -> dict[str, set[str]]:
    """Return phrases of the figure, as the scale has them -> words that it does not know."""
    assert set(OWN) < {row.phrases for row in settings.paper["lstm_figure2"].rows}
    task = settings.tasks[str(settings.scale.task_for("wmt14_en_fr_word"))]
    prepare = Preparation(task.preparation.train, "en").prepare
    counts = Counter(word for line in text for word in prepare(line).split())
    known = {
        word for word, _ in most_frequent(counts.items(), task.vocabulary.source_size)
    }
    found = {}
    read = Preparation(task.preparation.test, "en").prepare
    for name in map(settings.scale.phrases_for, OWN):
        phrases = [
            phrase for meaning in settings.phrases[name].meanings for phrase in meaning
        ]
        found[name] = {word for one in phrases for word in read(one).split()} - known
    return found


def test_of_the_demo(root: Path) -> None:
    english = [source for source, _ in read_demo_corpus()["train"]]
    found = unknown_words(load(root, {"scale": "demo"}), english)
    assert found == {name: set() for name in OF_THE_DEMO}


def test_of_the_miniature_mirror(root: Path) -> None:
    english = [source for source, _ in draw_sentences()["europarl"]]
    found = unknown_words(load(root, {"scale": "mirror"}), english)
    assert found == {name: set() for name in OF_THE_DEMO}


def test_of_multi30k(root: Path, shared: Path) -> None:
    captions = read_lines(shared / "data/multi30k/task1/raw/train.en.gz")
    found = unknown_words(load(root, {"scale": "multi30k"}), captions)
    assert found == {name: set() for name in OWN}
