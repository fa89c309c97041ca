"""What a training exports and says of it: the weights of its best epoch, whatever came after."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from convs2s.data.batches import Indices
from convs2s.data.vocabulary import read_counts
from convs2s.files.tensors import load_tensors
from convs2s.model_file import load_model
from convs2s.training.data import TrainingData
from convs2s.training.run import log_end, train
from convs2s.training.schedule import Schedule, TrainerState
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.interrupted import train_until


def record(output: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(output.with_name("training.json").read_text())
    return said


def history(output: Path) -> list[dict[str, Any]]:
    lines = output.with_name("history.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("stops", [[], [4, 5]])
def test_the_best_epochs_weights_are_exported_not_the_last(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: list[int]
) -> None:
    losses = [3.0, 2.0, 1.0, 1.5, 0.5, 2.5]
    seen: list[dict[str, torch.Tensor]] = []

    def validate(
        self: Updater, *_: Any, sources: Indices | None = None, **__: Any
    ) -> float:
        if sources is not None:
            return 3.5  # with permuted sources, after training
        weights = self.network.state_dict()
        seen.append({name: tensor.clone() for name, tensor in weights.items()})
        return losses[len(seen) - 1]

    monkeypatch.setattr(Updater, "validate", validate)
    settings = tiny.settings(maximum_epochs=6, learning_rate=0.01)
    job = tiny.job(task, tmp_path / "model.safetensors", settings)
    for stop in stops:
        train_until(job, stop)
    train(job)
    network, description = load_model(job.output)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, seen[4][name])
    best, last = (weights["decoder.output.bias"] for weights in seen[4:])
    assert not torch.equal(best, last)
    said = record(job.output)
    perplexity = pytest.approx(math.exp(0.5), abs=1e-4)
    expected = {"best_epoch": 5, "epochs": 6, "validation_perplexity": perplexity}
    assert expected.items() <= said.items()
    assert expected.items() <= description.training.items()
    assert said["curve"] == pytest.approx([math.exp(loss) for loss in losses])
    assert said["source_use"] == {
        "perplexity": perplexity,
        "permuted_perplexity": pytest.approx(math.exp(3.5), abs=1e-4),
        "ratio": pytest.approx(math.exp(3), abs=1e-4),
    }
    rows = history(job.output)
    assert "maximum of 6 epochs" in rows.pop()["stop"]
    tokens = int(TrainingData.read(task).train.lengths("target").sum())
    assert [row["tokens"] for row in rows] == [tokens] * 6
    assert [row["updates"] for row in rows] == [10, 20, 30, 40, 50, 60]
    # The fourth is no better: from then on every epoch divides.
    rates = [row["learning_rate"] for row in rows]
    assert rates == pytest.approx([0.01] * 4 + [0.001, 0.0001])


def test_the_mean_of_the_last_epochs(task: Path, tmp_path: Path) -> None:
    # Of a short one, its one epoch is all that there is to average.
    for epochs, averaged in ((3, [2, 3]), (1, [1])):
        output = tmp_path / str(epochs) / "model.safetensors"
        settings = tiny.settings(average=2, maximum_epochs=epochs)
        train(tiny.job(task, output, settings))
        kept = sorted(output.parent.glob("state/*/epoch*.safetensors"))
        assert [path.stem for path in kept] == [f"epoch{epoch}" for epoch in averaged]
        states = [load_tensors(path)[0] for path in kept]
        network, _ = load_model(output)
        for name, tensor in network.state_dict().items():
            mean = torch.stack([state[name] for state in states]).mean(0)
            torch.testing.assert_close(tensor, mean)
        updater = Updater(network, settings.training, seed=1, device="cpu")
        loss = updater.validate(TrainingData.read(task).valid)
        assert record(output)["validation_perplexity"] == math.exp(round(loss, 6))


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([], 3),  # what the tiny model has: 0.00, so that the loss decides
        ([7.0, 9.0, 8.0], 2),
    ],
)
def test_the_best_epoch_by_bleu_of_greedy_translations(
    task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scores: list[float],
    best: int,
) -> None:
    if scores:
        place = "convs2s.training.validation_bleu.validation_bleu"
        following = iter(scores)
        monkeypatch.setattr(place, lambda *_: next(following))
    output = tmp_path / "model.safetensors"
    train(tiny.job(task, output, tiny.settings(best_by="bleu")))
    rows = history(output)[:-1]
    said = record(output)
    assert [row["valid_bleu"] for row in rows] == (scores or [0.0] * 3)
    assert said["best_epoch"] == best
    assert said["validation_perplexity"] == rows[best - 1]["valid_perplexity"]


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_threshold_holds_where_words_are_split(tmp_path: Path, kind: str) -> None:
    task = tiny.prepare(tmp_path)
    (task / "vocabulary/codes").write_text("#version: 0.2\n")
    path = task / "dataset/train.json"
    stated = json.loads(path.read_text("utf-8"))
    counts = dict(read_counts(task / "vocabulary/en.tsv"))
    threshold = sorted(counts.values())[len(counts) // 2]
    stated["vocabulary"] |= {"kind": kind, "threshold": threshold}
    path.write_text(json.dumps(stated))
    frequent = sorted(token for token, count in counts.items() if count >= threshold)
    assert TrainingData.read(task).splittable == (frequent if kind == "bpe" else None)


def test_a_model_file_brings_what_translation_needs(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dictionary = tmp_path / "dictionary.tsv"
    dictionary.write_text("source\ttarget\tcount\tsource_count\nw1\tw1x\t3\t4\n")
    truecasers = [tmp_path / "en.tsv", tmp_path / "fr.tsv"]
    for word, table in zip(("London", "Londres"), truecasers, strict=True):
        table.write_text(f"word\tcount\n{word}\t2\n", "utf-8")
    data = replace(
        TrainingData.read(task), bpe_codes="#version: 0.2\n", splittable=["w1", "w2"]
    )
    monkeypatch.setattr(TrainingData, "read", lambda _: data)
    path = tmp_path / "model.safetensors"
    settings = tiny.settings(maximum_epochs=1)
    train(tiny.job(task, path, settings, dictionary=dictionary, truecasers=truecasers))
    _, found = load_model(path)
    assert found.dictionary == {"w1": "w1x"}
    assert found.truecasers == {"en": ["London"], "fr": ["Londres"]}
    assert (found.bpe_codes, found.splittable) == ("#version: 0.2\n", ["w1", "w2"])
    assert found.source_types == data.types["source"]
    assert found.target_types == data.types["target"]
    assert (found.task, found.preparation) == ("tiny", "moses_test")
    assert found.languages == {"source": "en", "target": "fr"}
    assert found.architecture == settings.architecture


def test_a_finished_model_outlives_its_removal_until_the_next_one_is_finished(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Snakemake removes outputs before it runs a training with more epochs."""
    path = tmp_path / "model.safetensors"
    kept = tmp_path / "state/finished.model.safetensors"
    train(tiny.job(task, path, tiny.settings(maximum_epochs=1)))
    first = path.read_bytes()
    assert kept.read_bytes() == first
    path.unlink()
    longer = tiny.job(task, path, tiny.settings(maximum_epochs=2))
    capsys.readouterr()
    train_until(longer, 1)
    assert f"the model of the last training stays in {kept}" in capsys.readouterr().err
    assert kept.read_bytes() == first
    train(longer)
    assert kept.read_bytes() == path.read_bytes() != first
    record = kept.with_name("finished.training.json")
    assert json.loads(record.read_text("utf-8"))["epochs"] == 2


PLACES = (
    " in config.local.yaml, or in config/models.d/NAME.yaml for a model of your own"
)
GOES_ON = (
    PLACES
    + ", which goes on from the last state; this model stays in state/ until then"
)
AGAIN = (
    PLACES
    + ", which trains again from the start; this model stays in state/ until then"
)
RAISE = "raise training.maximum_epochs (%s)"
LOWER = "lower training.schedule.minimum (0.0001)"


@pytest.mark.parametrize(
    ("best", "maximum", "kind", "rate", "advice"),
    [
        (4, 4, "plateau", 0.25, RAISE % 4 + GOES_ON),
        (4, 4, "step", 0.25, RAISE % 4 + GOES_ON),
        (4, 4, "cosine", 0.25, RAISE % 4 + AGAIN),
        (4, 3.5, "plateau", 0.25, RAISE % 3.5 + AGAIN),
        # Not the maximum alone has ended it.
        (4, 4, "plateau", 1e-5, LOWER + AGAIN),
        (4, 9, "plateau", 1e-5, LOWER + AGAIN),
        (4, None, "plateau", 1e-5, LOWER + AGAIN),
        (3, 4, "plateau", 0.25, None),
    ],
)
def test_advice_is_given_where_the_last_of_four_epochs_was_the_best(
    task: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    best: int,
    maximum: float | None,
    kind: str,
    rate: float,
    advice: str | None,
) -> None:
    trainer = tiny.trainer(
        task, tmp_path, maximum_epochs=maximum, schedule={"kind": kind}
    )
    schedule = Schedule(rate, annealing=True, best_epoch=best, stop_reason="enough")
    trainer.state = TrainerState(schedule, rate, epoch=5)
    validation: Any = SimpleNamespace(source_use=None)
    log_end(trainer, validation)
    said = capsys.readouterr().err
    assert ("more epochs would help" in said) == (advice is not None)
    assert (advice or "") in said
