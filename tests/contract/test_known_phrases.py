"""This project's phrases are in words that the vocabulary of the demo has."""

from collections import Counter

from convs2s.config.settings import Settings
from convs2s.data.vocabulary import most_frequent
from convs2s.demo.corpus import read_demo_corpus
from convs2s.text.preparation import Preparation


def test_each_word_of_the_phrases_of_the_lstms_figure_2_is_known_to_the_demo(
    demo: Settings,
) -> None:
    task = demo.tasks[str(demo.scale.task_for("wmt14_en_fr_word"))]
    prepare = Preparation(task.preparation.train, "en").prepare
    text = [prepare(source) for source, _ in read_demo_corpus()["train"]]
    counts = Counter(" ".join(text).split())
    known = dict(most_frequent(counts.items(), task.vocabulary.source_size)).keys()
    read = Preparation(task.preparation.test, "en").prepare
    rows = demo.paper["lstm_figure2"].rows
    own = [row.phrases for row in rows if row.group != "of the paper"]
    assert own
    for phrases in own:
        for meaning in demo.phrases[demo.scale.phrases_for(str(phrases))].meanings:
            assert set(read(" ".join(meaning)).split()) <= known
