"""What is counted of a task's data for the readers of its scores, and where it is said."""

from functools import partial
from pathlib import Path

import pytest

from convs2s.data.dataset_counts import Encoding, count_dataset
from convs2s.data.overlap import EvaluationText, count_overlap, files_by_set
from convs2s.files.text import read_line_pairs, read_lines, write_json, write_lines
from convs2s.publish.card import model_card
from convs2s.scoring.data_counts import (
    DataCounts,
    Overlap,
    TokenCount,
    TrainingOverlap,
    read_data_counts,
)
from convs2s.scoring.evaluation import BleuEvaluation, RougeEvaluation
from convs2s.scoring.summary import read_evaluation
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import Preparation
from convs2s.training.run import train
from tests.contract import score_files
from tests.support import tiny
from tests.support.refusals import refuses, rows, says

pytestmark = pytest.mark.usefixtures("in_folder")

TRAIN = [
    ("She said: \u201cYes\u201d.", "Elle a dit : \u00ab oui \u00bb."),
    ("A dog sleeps.", "Un chien dort."),
    ("A dog sleeps.", "Un chien dort ici."),
    ("Thank you.", "Merci."),
    ("The cat runs.", "Le chat court."),
]

# A pair of the test set; in how many of its pairs both sides, the source and the target are in the
# training text; and how many training pairs have one of its lines. As words, other quotes and
# blanks are equal; case and an empty line make no equal lines.
SHARED = r"""
The cow runs. => La vache court. => 0 0 0 => 0
The cat runs.\nThe cat runs. => Le chat court.\nLe chat court. => 2 2 2 => 1
She said:  "Yes". => Elle a dit\u00a0: "oui". => 1 1 1 => 1
A dog sleeps. => Il dort. => 0 1 0 => 2
Thanks. => Merci. => 0 0 1 => 1
Thank you. => Un chien dort. => 0 1 1 => 2
THANK YOU.\n => merci.\n => 0 0 0 => 0
"""


def test_lines_of_a_test_set_in_training_text() -> None:
    names = "valid.source", "valid.target", "test.source", "test.target"
    sides = Path("train.en"), Path("train.fr")
    prepare = (
        Preparation("moses_train", "en").prepare,
        Preparation("moses_train", "fr").prepare,
    )

    write_training_text = partial(
        tokenize_and_filter,
        TRAIN,
        sides=sides,
        report=Path("train.json"),
        minimum=1,
        maximum=None,
        ratio=None,
        prepare=prepare,
    )
    for source, target, shared, training in rows(SHARED):
        for name, text in zip(names, ("No.", "Non.", source, target), strict=True):
            write_lines(name, [text])
        evaluation = EvaluationText(files_by_set(names), prepare)
        count = partial(
            count_overlap,
            train=sides,
            evaluation=evaluation,
            output=Path("overlap.json"),
        )
        write_training_text()
        of_test = Overlap(source.count("\n") + 1, *map(int, shared.split()))
        sets = {"valid": Overlap(1, 0, 0, 0), "test": of_test}
        assert count() == TrainingOverlap(int(training), sets)
        # The switch drops them, says so, and leaves none.
        report = write_training_text(shares_line=evaluation.shares_line)
        assert report["dropped"]["overlap"] == int(training)
        assert len(list(read_line_pairs(*sides))) == len(TRAIN) - int(training)
        assert count().training == 0


def test_unknown_tokens_are_counted_said_and_warned_of(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlap, table, counts = map(Path, ("overlap", "table", "counts"))
    write_lines("test.target", ["w2x w2x w2x"])
    write_json(overlap, TrainingOverlap(2, {"test": Overlap(30, 2, 3, 2)}))
    tables = [task / "vocabulary/en.tsv", task / "vocabulary/fr.tsv"]
    codes = [Path("en.codes"), Path("fr.codes")]
    write_lines(codes[0], ["#version: 0.2", "w 2</w>"])
    write_lines(codes[1], ["#version: 0.2", "w 2", "w2 x</w>"])
    for word, share, bpe in (("zz", "25.0%", []), ("w2", "0.0%", codes)):
        write_lines("test.source", [f"w2 w2 {word}"])
        count_dataset(
            train=task / "dataset/train.json",
            valid=task / "dataset/valid.json",
            tests=files_by_set(["test.source", "test.target"]),
            encoding=Encoding(bpe, tables, []),
            overlap=overlap,
            table=table,
            counts=counts,
            most_tokens=None,
        )
        counted = read_data_counts(counts).unknown["test"]
        assert [str(side) for side in counted.values()] == [share, "0.0%"]
        shown = [line.split() for line in read_lines(table)]
        assert ["training", "0.0%", "0.0%"] in shown
        assert ["test", share, "0.0%"] in shown
        assert ["test", "30", "2", "3", "2"] in shown
        assert shown[-1][-1] == "2"
        unknown = f"{share} of the source and 0.0% of the target tokens are unknown"
        said = capsys.readouterr().out
        says(said, f"test: {unknown}\n", "warning: test: 2 of 30 pairs are also in")
        assert (f"warning: test: {unknown}" in said) == (word == "zz")


NONE = {side: TokenCount(100, 5) for side in ("source", "target")}
MANY = {"source": TokenCount(1000, 956), "target": TokenCount(100, 0)}
LEAK = Overlap(30, 30, 30, 30)


def test_notes_stand_beside_the_scores_of_their_test_set() -> None:
    path = Path("counts.json")
    lines = [score_files.decoded(1, "a")]
    runs = {("test", "seed1"): score_files.scored_bleu(Path(), "1", lines)}
    report = partial(score_files.report, Path(), BleuEvaluation, runs)
    text, data = report()
    # What is unusual is not of this set.
    unknown = {"train": MANY, "valid": NONE, "test": NONE}
    write_json(path, DataCounts({}, unknown, TrainingOverlap(9, {"valid": LEAK})))
    assert report(counts=path) == (text, data)
    unknown["test"] = MANY
    write_json(path, DataCounts({}, unknown, TrainingOverlap(9, {"test": LEAK})))
    warned, noted = report(counts=path)
    of_words, of_pairs = noted["tests"]["test"]["notes"]
    says(of_words, "95.6% of the source and 0.0% of the target tokens are unknown")
    says(of_pairs, "30 of 30 pairs are also in the training text")
    added = [line for line in warned.splitlines() if line not in text.splitlines()]
    assert added == [f"warning: {of_words}", f"warning: {of_pairs}"]
    # The score of each run has the overlap.
    scored = score_files.scored_bleu(Path(), "2", lines, counts=path)
    assert read_evaluation(BleuEvaluation, scored).overlap == LEAK
    scored = score_files.scored_rouge(Path(), "3", counts=path)
    assert read_evaluation(RougeEvaluation, scored).overlap == LEAK


def test_counts_are_in_the_card_of_a_model_of_that_data(results: Path) -> None:
    model = results / "models/small/seed1/model.safetensors"
    path = results / "dataset/counts.json"
    assert "in the training text: not recorded here" in model_card(model)
    stores = {}
    for split in ("train", "valid"):
        description = score_files.read(results / f"dataset/{split}.json")
        stores[f"dataset/{split}.arrow"] = description["sha256"]
    unknown = {"train": MANY, "valid": NONE, "test": NONE}
    overlap = TrainingOverlap(0, {"test": Overlap(3, 0, 0, 0)})
    write_json(path, DataCounts(stores, unknown, overlap))
    card = model_card(model)
    says(
        card,
        "| train | 95.6% | 0.0% | | | | |\n",
        "| test | 5.0% | 5.0% | 3 | 0 | 0 ",
        "Warning: train: 95.6% of the source and 0.0% of the target tokens are ",
    )
    assert card.count("Warning") == 1
    stores["dataset/valid.arrow"] = "0" * 64
    write_json(path, DataCounts(stores, unknown, overlap))
    assert "in the training text: not recorded here" in model_card(model)
    path.write_text("{}")
    refuses("counts.json: not the counts of a dataset", model_card, model)


def test_a_training_says_first_that_tokens_are_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tiny.prepare(Path("task"))
    description = folder / "dataset/train.json"
    stated = score_files.read(description)
    stated["target_unknown"] = stated["target_tokens"] // 2
    write_json(description, stated)
    train(tiny.job(folder, Path("model"), tiny.settings(maximum_epochs=1)))
    said = capsys.readouterr().err
    says(said.splitlines()[1], "warning: train: ", "% of the target tokens are unknown")
    assert said.count("warning: train") == 1
