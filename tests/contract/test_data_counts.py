"""What is counted of a task's data for the readers of its scores, and where it is said."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize
from convs2s.data.dataset_counts import Encoding, count_dataset
from convs2s.data.overlap import EvaluationText, count_overlap, files_by_set
from convs2s.data.vocabulary import write_counts
from convs2s.files.text import read_line_pairs, read_lines, write_json, write_lines
from convs2s.layout import TaskFolder
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
from tests.support import score_files, tiny
from tests.support.refusals import refusal, says

Pairs = list[tuple[str, str]]

TRAIN: Pairs = [
    ("She said: \u201cYes\u201d.", "Elle a dit : \u00ab oui \u00bb."),
    ("A dog sleeps.", "Un chien dort."),
    ("A dog sleeps.", "Un chien dort ici."),
    ("Thank you.", "Merci."),
    ("The cat runs.", "Le chat court."),
]
PREPARE = (
    Preparation("moses_train", "en").prepare,
    Preparation("moses_train", "fr").prepare,
)


def write_pairs(folder: Path, name: str, pairs: Pairs) -> list[str]:
    """Write the raw text of a set; return the names of its files."""
    files = []
    for index, side in enumerate(("source", "target")):
        path = folder / f"{name}.{side}.zst"
        write_lines(path, [pair[index] for pair in pairs])
        files.append(str(path))
    return files


def filtered(folder: Path, evaluation: EvaluationText) -> tuple[Path, Path]:
    sides = (folder / "train.en", folder / "train.fr")
    tokenize_and_filter(
        TRAIN,
        sides=sides,
        report=folder / "train.json",
        minimum=1,
        maximum=None,
        ratio=None,
        prepare=PREPARE,
        shares_line=evaluation.shares_line,
    )
    return sides


@pytest.mark.parametrize(
    ("pairs", "both", "source", "target", "training"),
    [
        ([], 0, 0, 0, 0),
        ([("The cow runs.", "La vache court.")], 0, 0, 0, 0),
        # As it is, and twice.
        ([TRAIN[4], TRAIN[4]], 2, 2, 2, 1),
        # With other quotes and blanks: as words they are equal.
        ([('She said:  "Yes".', 'Elle a dit\u00a0: "oui".')], 1, 1, 1, 1),
        # One side alone; and both, but of two training pairs.
        ([("A dog sleeps.", "Il dort.")], 0, 1, 0, 2),
        ([("Thanks.", "Merci.")], 0, 0, 1, 1),
        ([("Thank you.", "Un chien dort.")], 0, 1, 1, 2),
        # Case and an empty line make no equal lines.
        ([("THANK YOU.", "merci."), ("", "")], 0, 0, 0, 0),
    ],
)
def test_lines_of_a_test_set_in_training_text(
    tmp_path: Path, pairs: Pairs, both: int, source: int, target: int, training: int
) -> None:
    valid = write_pairs(tmp_path, "valid", [("No.", "Non.")])
    files = [*valid, *write_pairs(tmp_path, "test", pairs)]
    evaluation = EvaluationText(files_by_set(files), PREPARE)
    text = filtered(tmp_path, EvaluationText({}, PREPARE))
    output = tmp_path / "overlap.json"
    found = count_overlap(train=text, evaluation=evaluation, output=output)
    expected = Overlap(pairs=len(pairs), both=both, source=source, target=target)
    assert found.sets == {"valid": Overlap(1, 0, 0, 0), "test": expected}
    assert found.training == training
    # The switch drops them, says so, and leaves none.
    text = filtered(tmp_path, evaluation)
    report = json.loads((tmp_path / "train.json").read_text("utf-8"))
    assert report["dropped"]["overlap"] == training
    assert len(list(read_line_pairs(*text))) == len(TRAIN) - training
    found = count_overlap(train=text, evaluation=evaluation, output=output)
    assert found.training == 0
    assert found.sets["test"] == Overlap(len(pairs), 0, 0, 0)


WORDS = ["a", "dog", "sleeps", "un", "chien", "dort", "."]


@pytest.mark.parametrize(
    ("line", "shares"),
    [
        ("A dog sleeps.", (1 / 5, 1 / 5)),  # of four words and the end
        ("a dog sleeps.", (0.0, 0.0)),
        ("\u0442\u0440\u0435\u0435 \u0445", (2 / 3, 2 / 3)),
        ("a dog \U0001f642 sleeps " * 4, (4 / 17, 4 / 17)),
    ],
)
def test_unknown_tokens_are_counted_said_and_warned_of(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    shares: tuple[float, float],
) -> None:
    tables = [tmp_path / "en.tsv", tmp_path / "fr.tsv"]
    for table in tables:
        write_counts(table, [(word, 1) for word in WORDS])
    metadata = DatasetMetadata(
        task="mine",
        languages=Languages(source="en", target="fr"),
        preparation="moses_test",
        vocabulary=VocabularySettings(kind="word"),
    )
    text = write_pairs(tmp_path, "train", [("a dog", "un chien"), ("x", "un")])
    for split in ("train", "valid"):
        binarize(
            text=(Path(text[0]), Path(text[1])),
            bpe_codes=(),
            vocabularies=tables,
            store=tmp_path / f"{split}.arrow",
            description=tmp_path / f"{split}.json",
            metadata=metadata,
        )
    said = capsys.readouterr().out
    says(said, "train.arrow: 20.0% of the source and 0.0% of the target tokens are unk")
    says(
        said, "warning: ", "train.arrow: 20.0% of the source and 0.0%", "(<unk>): does"
    )
    overlap = tmp_path / "overlap"
    write_json(overlap, TrainingOverlap(2, {"test": Overlap(30, 2, 3, 2)}))
    count_dataset(
        train=tmp_path / "train.json",
        valid=tmp_path / "valid.json",
        tests=files_by_set(write_pairs(tmp_path, "test", [(line, line)])),
        encoding=Encoding([], tables, []),
        overlap=overlap,
        table=tmp_path / "counts.txt",
        counts=tmp_path / "counts.json",
        most_tokens=None,
    )
    counts = read_data_counts(tmp_path / "counts.json")
    found = [count.share for count in counts.unknown["test"].values()]
    assert found == pytest.approx(shares)
    printed = [f"{share:.1%}" for share in shares]
    rows = [row.split() for row in read_lines(tmp_path / "counts.txt")]
    assert ["training", "20.0%", "0.0%"] in rows
    assert ["test", *printed] in rows
    assert ["test", "30", "2", "3", "2"] in rows
    assert rows[-1][-1] == "2"
    said = capsys.readouterr().out
    says(said, f"test: {printed[0]} of the source and {printed[1]} of the target")
    warned = re.findall(r"^warning: test: .*", said, re.MULTILINE)
    assert len(warned) == 1 + (shares[0] > 0)
    says(warned[-1], "test: 2 of 30 pairs are also in the training text", "remove_over")


NONE = {side: TokenCount(100, 5) for side in ("source", "target")}
MANY = {"source": TokenCount(1000, 956), "target": TokenCount(100, 0)}
LEAK = Overlap(30, 30, 30, 30)


def counts_of(stores: dict[str, str], **unknown: Any) -> DataCounts:
    known = {"train": NONE, "valid": NONE, "test": NONE} | unknown
    overlap = {"valid": Overlap(30, 0, 0, 0), "test": Overlap(3, 0, 0, 0)}
    return DataCounts(stores, known, TrainingOverlap(0, overlap))


@pytest.mark.parametrize("kind", [BleuEvaluation, RougeEvaluation])
def test_notes_stand_beside_the_scores_of_their_test_set(
    tmp_path: Path, kind: type[BleuEvaluation | RougeEvaluation]
) -> None:

    def scored(counts: Path | None) -> Path:
        if kind is RougeEvaluation:
            return score_files.scored_rouge(tmp_path, "1", counts=counts)
        lines = [score_files.decoded(1, "a")]
        return score_files.scored_bleu(tmp_path, "1", lines, counts=counts)

    runs = {("test", "seed1"): scored(None)}
    before = score_files.report(tmp_path, kind, runs)
    path = tmp_path / "counts.json"
    unusual = counts_of({}, train=MANY)
    write_json(path, unusual)
    # What is unusual is not of this set.
    assert score_files.report(tmp_path, kind, runs, counts=path) == before
    sets = {**unusual.overlap.sets, "test": LEAK}
    known = DataCounts({}, {**unusual.unknown, "test": MANY}, TrainingOverlap(9, sets))
    write_json(path, known)
    text, data = score_files.report(tmp_path, kind, runs, counts=path)
    notes = data["tests"]["test"].pop("notes")
    assert data == before[1]
    assert len(notes) == 2
    says(notes[0], "95.6% of the source and 0.0% of the target tokens are unknown")
    says(notes[1], "30 of 30 pairs are also in the training text")
    added = [line for line in text.splitlines() if line not in before[0].splitlines()]
    assert added == [f"warning: {note}" for note in notes]
    # The score of each run has the overlap.
    assert read_evaluation(kind, scored(path)).overlap == LEAK


def test_counts_are_in_the_card_of_a_model_of_that_data(results: Path) -> None:
    model = results / "models/small/seed1/model.safetensors"
    path = Path(TaskFolder(str(results)).dataset_counts)
    assert "in the training text: not recorded here" in model_card(model)
    stores = {}
    for split in ("train", "valid"):
        said = json.loads((results / f"dataset/{split}.json").read_text("utf-8"))
        stores[f"dataset/{split}.arrow"] = said["sha256"]
    write_json(path, counts_of(stores, train=MANY))
    card = model_card(model)
    says(
        card,
        "| train | 95.6% | 0.0% | | | | |\n",
        "| test | 5.0% | 5.0% | 3 | 0 | 0 | 0",
    )
    says(
        card,
        "Warning: train: 95.6% of the source and 0.0% of the target tokens are unknown (&lt;",
    )
    assert card.count("Warning") == 1
    write_json(path, counts_of({**stores, "dataset/valid.arrow": "0" * 64}))
    assert "in the training text: not recorded here" in model_card(model)
    path.write_text("{}")
    says(refusal(model_card, model), "counts.json: not the counts of a dataset")


def test_a_training_says_first_that_tokens_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tiny.prepare(tmp_path / "task")
    description = task / "dataset/train.json"
    said = json.loads(description.read_text("utf-8"))
    said["target_unknown"] = said["target_tokens"] // 2
    description.write_text(json.dumps(said))
    train(
        tiny.job(task, tmp_path / "model.safetensors", tiny.settings(maximum_epochs=1))
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("warning: train: ")
    says(lines[1], "% of the target tokens are unknown (<unk>): does the text have")
    assert sum(line.startswith("warning: train") for line in lines) == 1
