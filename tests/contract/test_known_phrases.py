"""This project's phrases are in words that the vocabularies of the scales have."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from convs2s.config.load import load
from convs2s.data.vocabulary import most_frequent
from convs2s.demo.corpus import read_demo_corpus
from convs2s.files.text import read_lines
from convs2s.text.preparation import Preparation


def check_phrases(root: Path, scale: str, text: Iterable[str]) -> None:
    """Each word of the phrases of the LSTM's figure 2, as a scale has them, is known to it."""
    settings = load(root, {"scale": scale})
    task = settings.tasks[str(settings.scale.task_for("wmt14_en_fr_word"))]
    prepare = Preparation(task.preparation.train, "en").prepare
    counts = Counter(word for line in text for word in prepare(line).split())
    kept = most_frequent(counts.items(), task.vocabulary.source_size)
    known = {word for word, _ in kept}
    read = Preparation(task.preparation.test, "en").prepare
    names = {
        settings.scale.phrases_for(str(row.phrases))
        for row in settings.paper["lstm_figure2"].rows
        if row.group != "of the paper"
    }
    assert names
    for name in names:
        for meaning in settings.phrases[name].meanings:
            assert set(read(" ".join(meaning)).split()) <= known


def test_of_the_demo(root: Path) -> None:
    check_phrases(root, "demo", [source for source, _ in read_demo_corpus()["train"]])


def test_of_multi30k(root: Path, shared: Path) -> None:
    captions = read_lines(shared / "data/multi30k/task1/raw/train.en.gz")
    check_phrases(root, "multi30k", captions)
