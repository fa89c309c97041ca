"""What updates learn from is read before its turn, by a thread that changes nothing and ends."""

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.data.batches import collate
from convs2s.data.vocabulary import PADDING
from convs2s.errors import UserError
from convs2s.training import loading
from convs2s.training.loading import COMPILED_LENGTHS, ahead
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.updates import make_update


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("loading")]


def test_items_are_loaded_in_another_thread_and_in_their_order() -> None:
    taken: list[int] = []

    def load(item: int) -> tuple[int, str]:
        taken.append(item)
        return item, threading.current_thread().name

    with closing(ahead(load, range(5))) as loaded:
        first = next(loaded)
        assert threads()
        found = [first, *loaded]
    assert [item for item, _ in found] == taken == list(range(5))
    assert all(name.startswith("loading") for _, name in found)
    assert not threads()


def test_a_failure_is_raised_in_its_turn_and_as_it_is() -> None:
    def load(item: int) -> int:
        if item == 1:
            raise UserError("train.arrow: pair 2 is damaged")
        return item

    with closing(ahead(load, range(9))) as loaded:
        assert next(loaded) == 0
        with pytest.raises(UserError, match=r"^train\.arrow: pair 2 is damaged$"):
            next(loaded)
    assert not threads()


def test_no_more_is_loaded_than_is_soon_needed() -> None:
    taken: list[int] = []
    with closing(ahead(taken.append, range(100))) as loaded:
        next(loaded)
    assert len(taken) <= 2 + loading.AHEAD
    assert not threads()


def test_an_interrupted_training_leaves_no_thread(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny.trainer(task, tmp_path)

    def interrupted(*_: Any) -> None:
        assert threads()
        raise KeyboardInterrupt

    monkeypatch.setattr(Updater, "start", interrupted)
    with trainer.folder.locked(), pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert not threads()


def test_a_training_says_what_the_thread_fails_of(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny.trainer(task, tmp_path)

    def damaged(*_: Any) -> None:
        raise UserError("train.arrow: damaged")

    monkeypatch.setattr(Updater, "load", damaged)
    with (
        trainer.folder.locked(),
        pytest.raises(UserError, match=r"^train\.arrow: damaged$"),
    ):
        trainer.run()
    assert trainer.state.updates == 0


def updated(task: Path, folder: Path, multiple: int) -> Trainer:
    """Make some updates in micro-batches, padded to a multiple of tokens."""
    one = tiny.trainer(task, folder, batch={"sentences": 16, "micro_batch_tokens": 40})
    one.updater.multiple = multiple
    for number, rows in enumerate(one.plan(1)):
        make_update(one.updater, one.train, rows, Moment(1, number, 0.25))
    return one


def test_padding_to_more_tokens_changes_no_update(task: Path, tmp_path: Path) -> None:
    plain, padded = (
        updated(task, tmp_path / str(many), many) for many in (1, COMPILED_LENGTHS)
    )
    for _, inputs in padded.updater.load(padded.train, np.arange(16)).micro_batches:
        assert inputs.source.shape[1] % COMPILED_LENGTHS == 0
        assert inputs.previous.shape[1] % COMPILED_LENGTHS == 0
    for mine, other in zip(
        padded.network.parameters(), plain.network.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=0)
    expected = plain.updater.validate(plain.valid)
    assert padded.updater.validate(padded.valid) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_are_as_small_as_can_be_on_a_cpu(
    task: Path, tmp_path: Path, compiled: bool
) -> None:
    one = tiny.trainer(task, tmp_path, compile=compiled)
    batch = collate(one.train, np.arange(16), multiple=one.updater.multiple)
    assert (batch.source != PADDING).any(0).all()
    assert (batch.target != PADDING).any(0).all()
