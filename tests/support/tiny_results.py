"""A results folder as the workflow leaves it: a tiny training, its translations and scores."""

from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.config.identity import training_settings
from convs2s.config.task import DataSource
from convs2s.data.dataset import read_description
from convs2s.decoding.test_sets import decode_test_set
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import write_json, write_lines
from convs2s.layout import TaskFolder
from convs2s.manifest import run_manifest
from convs2s.scoring.evaluation import evaluate_bleu
from convs2s.training.run import train
from tests.support import tiny

SOURCE = DataSource(
    file="https://example.org/train.en.gz", sha256="a" * 64, licence="LicenseRef-WMT"
)
SENTENCES = ["w1 w2 w3 w4", "w5 w6", "w7 w8 w9"]


def write_results(task: TaskFolder) -> None:
    """Write a task's results; its path is relative, as it is in the workflow's manifests."""
    tiny.prepare(Path(task.path))
    described = Path(task.store_description("train"))
    metadata = read_description(described).model_copy(update={"sources": (SOURCE,)})
    write_json(described, metadata.model_dump(mode="json"))
    model = Path(task.model("small", "seed1"))
    train(tiny.job(Path(task.path), model))
    write_json(model.parents[1] / "settings.json", training_settings(tiny.settings()))
    for stage in ("raw", "tok"):
        for side in ("source", "target"):
            write_lines(task.text(stage, "test", side), SENTENCES)
    raw, tokenized = (Path(task.text(one, "test", "target")) for one in ("raw", "tok"))
    lines, text, scores = (
        model.with_name(f"test.beam5.{suffix}")
        for suffix in ("jsonl", "txt", "bleu.json")
    )
    decode_test_set(
        LineTranslator([model], DecodingSettings(minimum_length=3), "cpu"),
        source=Path(task.text("raw", "test", "source")),
        lines=lines,
        text=text,
    )
    evaluate_bleu(
        translations=lines,
        raw=raw,
        tokenized=tokenized,
        output=scores,
        test_set="test",
        manifest=run_manifest(map(str, (lines, model, raw, tokenized)), task="tiny"),
    )
