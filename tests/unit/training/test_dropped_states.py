"""What is left of the states of a training that has ended, and that it is enough."""

from pathlib import Path
from typing import Any

import pytest

from convs2s.files.atomic import size_of
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.training import run as run_module
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny


def job(task: Path, folder: Path, **changes: Any) -> TrainingJob:
    return tiny.job(task, folder / "model.safetensors", tiny.settings(**changes))


def states(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("state/*/*.safetensors"))


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, ["best.safetensors"]),
        ({"optimizer": "adam", "learning_rate": 0.001}, ["best.safetensors"]),
        ({"best_by": "bleu"}, ["best.safetensors"]),
        ({"average": 2}, ["epoch2.safetensors", "epoch3.safetensors"]),
    ],
)
def test_what_the_model_is_made_of_stays_and_is_exported_again(
    task: Path, tmp_path: Path, changes: dict[str, Any], left: list[str]
) -> None:
    one = job(task, tmp_path, **changes)
    train(one)
    before = sha256(one.output), (tmp_path / "history.jsonl").read_bytes()
    assert states(tmp_path) == sorted([*left, "last.safetensors"])
    assert size_of(tmp_path / "state") < len(left) * 1.3 * one.output.stat().st_size
    contents = {
        path: path.read_bytes() for path in tmp_path.glob("state/*/*.safetensors")
    }
    for _ in range(2):
        one.output.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(Trainer, "_train_epoch")
            # Another machine would round differently.
            patch.delattr(Updater, "validate")
            train(one)
        assert (sha256(one.output), (tmp_path / "history.jsonl").read_bytes()) == before
    assert {path: path.read_bytes() for path in contents} == contents


@pytest.mark.parametrize(
    "step", [(run_module, "export"), (Trainer, "drop_unneeded")], ids=["export", "drop"]
)
@pytest.mark.parametrize("average", [None, 2])
def test_a_kill_at_the_end_costs_no_training(
    task: Path, tmp_path: Path, step: tuple[object, str], average: int | None
) -> None:
    """It comes before the model is whole, or between the model and what then goes."""
    one, undisturbed = (
        job(task, tmp_path / name, average=average) for name in ("one", "two")
    )
    train(undisturbed)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*step, kill)
        with pytest.raises(KeyboardInterrupt):
            train(one)
    (last,) = (tmp_path / "one").glob("state/*/last.safetensors")
    assert load_tensors(last)[0]
    one.output.unlink(missing_ok=True)  # as Snakemake does
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Trainer, "_train_epoch")
        train(one)
    assert sha256(one.output) == sha256(undisturbed.output)
    assert not load_tensors(last)[0]
