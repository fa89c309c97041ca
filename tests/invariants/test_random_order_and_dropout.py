"""Order and dropout: new in each epoch, update, micro-batch and worker, and the seed's own."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.models.kernels import dropout
from convs2s.training.schedule import Moment
from tests.support import tiny
from tests.support.tiny import make_update, short_of_memory
from tests.support.together import Apart

Masks = Callable[..., list[bytes]]

# ---- the order of the data, and the rate of each update ----


def plan(task: Path, epoch: int, seed: int = 1) -> list[list[int]]:
    one = tiny.trainer(task, task / "none", seed=seed)
    return [rows.tolist() for rows in one.plan(epoch)]


def test_each_epoch_has_an_order_of_its_own_that_repeats_with_the_seed(
    task: Path,
) -> None:
    first = plan(task, 1)
    second = plan(task, 2)
    assert plan(task, 1) == first
    assert plan(task, 1, seed=2) != first
    # Other batches, not the same ones in another order.
    assert sorted(map(sorted, first)) != sorted(map(sorted, second))
    for batches in (first, second):
        assert sorted(chain.from_iterable(batches)) == list(range(160))


def test_each_update_has_its_rows_of_the_plan_and_its_rate(
    task: Path, tmp_path: Path
) -> None:
    """The rate is that of the middle of the update; the last epoch is a half."""
    cosine = {"kind": "cosine", "warmup": 1.0}
    trainer = tiny.trainer(
        task, tmp_path, maximum_epochs=1.5, schedule=cosine, learning_rate=0.4
    )
    trainer.updater.start = start = Mock(wraps=trainer.updater.start)  # type: ignore
    with trainer.folder.locked():
        trainer.run()
    seen = []
    for number, call in enumerate(start.call_args_list):
        loaded, moment = call.args
        epoch, batch = divmod(number, 10)
        assert (moment.epoch, moment.batch) == (epoch + 1, batch)
        assert list(loaded.rows) == list(trainer.plan(moment.epoch)[batch])
        seen.append(moment.learning_rate)
    middles = (np.arange(15) + 0.5) / 10
    falling = 0.5 * (1 + np.cos(np.pi * (middles - 1) / 0.5))
    rates = 0.4 * np.where(middles < 1, middles, falling)
    assert seen == pytest.approx(list(rates))


# ---- dropout ----


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All random bits that dropout draws in the test."""
    seen: list[bytes] = []
    draw = dropout.random_bits

    def spy(count: int) -> Tensor:
        bits: Tensor = draw(count)
        seen.append(bits.numpy().tobytes())
        return bits

    monkeypatch.setattr(dropout, "random_bits", spy)
    return seen


@pytest.fixture
def masks(task: Path, drawn: list[bytes]) -> Masks:
    """Return all masks that updates draw, each at an epoch and a number.

    Each is of one pair, 16 times: whatever differs between micro-batches of ``pairs`` is chance.
    """

    def found(
        *moments: tuple[int, int], pairs: int = 16, **changes: Any
    ) -> list[bytes]:
        one = tiny.trainer(task, task / "none", dropout=0.3, **changes)
        one.updater.limit = pairs * int(one.train.lengths("source")[0])
        drawn.clear()
        for epoch, number in moments:
            moment = Moment(epoch, number, 1e-9)
            make_update(one.updater, one.train, np.zeros(16, np.int64), moment)
        return list(drawn)

    return found


def test_masks_differ_between_epochs_and_updates_and_repeat_with_the_seed(
    masks: Masks,
) -> None:
    moments = [(1, 0), (1, 1), (2, 0), (2, 1)]
    found = masks(*moments)
    # Every mask of every layer and update is one of a kind.
    assert len(set(found)) == len(found) > 0
    assert set(found).isdisjoint(masks(*moments, seed=2))
    # An update's masks are its own, whichever came before: a killed training goes on from any.
    last = masks(moments[-1])
    assert found[-len(last) :] == last


def test_masks_differ_between_micro_batches_and_workers(masks: Masks) -> None:
    alone = masks((1, 0), pairs=4)
    assert len(alone) == 4 * len(masks((1, 0)))
    assert len(set(alone)) == len(alone)
    # The second worker has the second half, and the masks that one process gives it.
    halves = masks((1, 0), pairs=8)
    second = masks((1, 0), pairs=8, workers=Apart(1, 2))
    assert second == halves[len(halves) // 2 :]
    with short_of_memory(
        False
    ):  # halves of the first, which did not fit, have their own
        found = masks((1, 0), pairs=8)
    assert len(set(found)) == len(found)


def test_dropout_is_where_the_paper_has_it_and_not_in_validation(
    task: Path, drawn: list[bytes]
) -> None:
    """On both embeddings, each convolution's input and the decoder's output (section 4.2)."""
    one = tiny.trainer(task, task / "none", dropout=0.25)
    one.network.train()
    one.updater.validate(one.valid)
    assert not drawn
    one.network.train()(torch.full((1, 5), 4), torch.full((1, 7), 4))
    # Embedding and one block of the encoder; embedding, two blocks and output of the decoder.
    counts = [len(bits) // 2 for bits in drawn]
    assert counts == [16 * tokens for tokens in (5, 5, 7, 7, 7, 7)]
