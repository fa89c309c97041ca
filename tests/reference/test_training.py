"""Short trainings on the demo's text with fairseq's settings stay within its convergence band.

A minute a seed on one core, so it is marked slow.
"""

import json
from pathlib import Path

import pytest

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.model import ModelSettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize
from convs2s.data.vocabulary import write_counts
from convs2s.files.text import read_lines, write_lines
from convs2s.models.kernels.matmul import Kernel
from convs2s.text.bpe import Bpe
from convs2s.training.run import train
from tests.support import tiny
from tests.support.golden import DATA, golden_lines
from tests.support.subword_nmt import codes_of
from tests.support.trained import TRAINED

BAND = json.loads((TRAINED / "band.json").read_text("utf-8"))["by_epoch"]
BLOCKS = [{"layers": 2, "width": 64, "kernel": 3}]
SETTINGS = {
    "description": "fairseq's settings",
    "architecture": {
        "embedding": 64,
        "output_embedding": 64,
        "encoder": BLOCKS,
        "decoder": BLOCKS,
        "positions": {"maximum": 80},
        "dropout": 0.1,
        "gradient_scaling": "fairseq",
    },
    "training": {
        "schedule": {"kind": "step", "hold": len(BAND)},
        "maximum_epochs": len(BAND),
    },
}
DEVIATIONS = 3


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task's folder: fairseq's tokens, taken as whole words, and its dictionaries."""
    folder = tmp_path_factory.mktemp("task")
    metadata = DatasetMetadata(
        task="demo",
        languages=Languages(source="en", target="fr"),
        preparation="moses_test",
        vocabulary=VocabularySettings(kind="word"),
    )
    bpe = Bpe(codes_of(TRAINED / "tiny.codes.1000"))
    sides = ("en", "fr")
    for side in sides:
        pairs = (
            line.split(" ") for line in golden_lines(TRAINED, f"tiny.dict.{side}.txt")
        )
        table = folder / "vocabulary" / f"{side}.tsv"
        table.parent.mkdir(exist_ok=True)
        write_counts(table, ((token, int(count)) for token, count in pairs))
        train_text = golden_lines(DATA / "bpe", f"train.tok.{side}")
        valid_text = golden_lines(DATA / "tok", f"tok-a.2017.{side}")[500:1000]
        write_lines(folder / f"train.{side}", map(bpe.split, train_text))
        write_lines(folder / f"valid.{side}", map(bpe.split, valid_text))
    for split in "train", "valid":
        binarize(
            text=(folder / f"{split}.en", folder / f"{split}.fr"),
            bpe_codes=(),
            vocabularies=[folder / "vocabulary" / f"{side}.tsv" for side in sides],
            store=folder / "dataset" / f"{split}.arrow",
            description=folder / "dataset" / f"{split}.json",
            metadata=metadata,
        )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_three_epochs_stay_within_fairseqs_band(
    task: Path, tmp_path: Path, seed: int, kernel: Kernel
) -> None:
    given = ModelSettings.model_validate(SETTINGS)
    train(
        tiny.job(
            task, tmp_path / "model.safetensors", given, seed=seed, products=kernel
        )
    )
    rows = (json.loads(line) for line in read_lines(tmp_path / "history.jsonl"))
    epochs = [row for row in rows if "epoch" in row]  # the last row says why it ended
    assert [epoch["updates"] for epoch in epochs] == [188, 376, 564]
    for ours, theirs in zip(epochs, BAND, strict=True):
        print(
            f"{ours['valid_perplexity']:.2f}, fairseq's {theirs['mean_perplexity']:.2f}"
        )
        assert ours["valid_perplexity"] == pytest.approx(
            theirs["mean_perplexity"], abs=DEVIATIONS * theirs["deviation"]
        )
