"""Order and dropout: new in each epoch, update, micro-batch and worker, and the seed's own."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torch.distributed import Work

from convs2s.models.kernels import dropout
from convs2s.training.loading import LoadedUpdate
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import StartedUpdate, Updater
from convs2s.training.workers import Workers
from tests.support import tiny
from tests.support.updates import make_update

HALVES = {"sentences": 16, "micro_batch_tokens": 30}
EQUAL_LENGTHS = [["w1", "w2", "w3"]] * 60
"""One pair over and over: whatever differs between two of its batches is chance."""

Bits = npt.NDArray[np.int16]


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare_pairs(
        tmp_path_factory.mktemp("equal"), EQUAL_LENGTHS, held_out=20
    )


# ---- the order of the data ----


def plan(task: Path, epoch: int, **others: Any) -> list[list[int]]:
    one = tiny.trainer(task, task / "none", **others)
    return [rows.tolist() for rows in one.plan(epoch)]


def test_each_epoch_has_an_order_of_its_own_that_repeats_with_the_seed(
    task: Path,
) -> None:
    first, second = plan(task, 1), plan(task, 2)
    assert plan(task, 1) == first
    assert plan(task, 1, seed=2) != first
    assert first != second
    # Other batches, not the same ones in another order.
    assert sorted(map(sorted, first)) != sorted(map(sorted, second))
    for batches in (first, second):
        assert sorted(itertools.chain.from_iterable(batches)) == list(range(160))


def test_batches_do_not_come_by_length(task: Path) -> None:
    one = tiny.trainer(task, task / "none")
    lengths = one.train.lengths("source")
    longest = [int(lengths[rows].max()) for rows in one.plan(1)]
    assert longest != sorted(longest)


@dataclass(frozen=True)
class Asked:
    """What the trainer asked of an update."""

    rows: tuple[int, ...]
    epoch: int
    number: int
    rate: float


def asked_for(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """Train; return what each update was asked for."""
    asked: list[Asked] = []
    start = Updater.start

    def spy(self: Updater, loaded: LoadedUpdate, moment: Moment) -> StartedUpdate:
        asked.append(Asked(tuple(loaded.rows.tolist()), *moment))
        return start(self, loaded, moment)

    monkeypatch.setattr(Updater, "start", spy)
    with trainer.folder.locked():
        trainer.run()
    return asked


def test_a_training_follows_each_epochs_plan(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny.trainer(task, tmp_path, maximum_epochs=3)
    asked = asked_for(trainer, monkeypatch)
    expected = [
        (tuple(rows), epoch, number)
        for epoch in (1, 2, 3)
        for number, rows in enumerate(plan(task, epoch))
    ]
    assert [(one.rows, one.epoch, one.number) for one in asked] == expected
    orders = [[one.rows for one in asked if one.epoch == epoch] for epoch in (1, 2, 3)]
    assert orders[0] != orders[1] != orders[2] != orders[0]


# ---- the learning rate of each update ----


def test_a_cosine_moves_the_rate_with_each_update(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cosine = {"kind": "cosine", "warmup": 1.0}
    trainer = tiny.trainer(
        task, tmp_path, maximum_epochs=2, schedule=cosine, learning_rate=0.1
    )
    rates = [one.rate for one in asked_for(trainer, monkeypatch)]
    # Epochs that are done in the middle of each update.
    middles = (np.arange(20) + 0.5) / 10
    falling = 0.5 * (1 + np.cos(np.pi * (middles - 1)))
    assert rates == pytest.approx(
        (0.1 * np.where(middles < 1, middles, falling)).tolist()
    )


def test_steps_come_within_an_epoch(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"kind": "step", "hold": 1, "every": 0.5, "divide_by": 2}
    trainer = tiny.trainer(
        task, tmp_path, maximum_epochs=2.5, schedule=steps, learning_rate=0.4
    )
    rates = [one.rate for one in asked_for(trainer, monkeypatch)]
    assert rates == pytest.approx([0.4] * 10 + [0.2] * 5 + [0.1] * 5 + [0.05] * 5)


def test_a_plateau_divides_after_the_epoch_that_is_no_better(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 1.0, 1.0])
    monkeypatch.setattr(Updater, "validate", lambda *_, **__: next(losses))
    trainer = tiny.trainer(task, tmp_path, maximum_epochs=5, learning_rate=0.1)
    rates = [one.rate for one in asked_for(trainer, monkeypatch)]
    assert rates == pytest.approx([0.1] * 30 + [0.01] * 10 + [0.001] * 10)


# ---- dropout ----


def masks(
    task: Path,
    monkeypatch: pytest.MonkeyPatch,
    moments: list[tuple[int, int]],
    *,
    rank: int = 0,
    seed: int = 1,
    batch: dict[str, Any] | None = None,
) -> list[bytes]:
    """Return all masks that updates of the same rows draw, in their order.

    Args:
        task: of one pair over and over.
        monkeypatch: to look at the random bits with.
        moments: epoch and number of each update.
        rank: of this worker among two that do not really meet; 0 alone.
        seed: of the training.
        batch: limits of a batch; by default all rows are one micro-batch.
    """
    drawn: list[bytes] = []
    draw = dropout.random_bits

    def spy(count: int) -> Tensor:
        bits: Tensor = draw(count)
        drawn.append(bits.numpy().tobytes())
        return bits

    workers = Workers() if rank == 0 else _Apart(rank, 2)
    limits = batch or {"sentences": 16, "micro_batch_tokens": None}
    one = tiny.trainer(
        task, task / "none", dropout=0.3, seed=seed, workers=workers, batch=limits
    )
    with monkeypatch.context() as patch:
        patch.setattr(dropout, "random_bits", spy)
        for epoch, number in moments:
            make_update(
                one.updater, one.train, np.arange(16), Moment(epoch, number, 1e-9)
            )
    assert drawn
    return drawn


class _Apart(Workers):
    """A worker whose others have what it has, without meeting them."""

    def check_same(self, parameters: Iterable[Tensor]) -> None:
        """Find nothing that differs."""

    def start_sum(self, tensor: Tensor) -> Work:
        tensor.mul_(self.count)
        return _Done()


class _Done(Work):
    """A sum that is over."""

    def wait(self, timeout: timedelta = timedelta()) -> bool:
        return True


def test_masks_differ_between_epochs_and_updates_and_repeat_with_the_seed(
    equal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [(1, 0), (1, 1), (2, 0), (2, 1)]
    drawn = masks(equal, monkeypatch, moments)
    assert masks(equal, monkeypatch, moments) == drawn
    # Every mask of every layer and update is one of a kind.
    assert len(set(drawn)) == len(drawn)
    assert set(drawn).isdisjoint(masks(equal, monkeypatch, moments, seed=2))
    # An update's masks are its own, whichever came before: a killed training goes on from any.
    last = masks(equal, monkeypatch, moments[-1:])
    assert drawn[-len(last) :] == last


def test_masks_differ_between_micro_batches(
    equal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Four pairs of 4 tokens with </s>.
    quarters = {"sentences": 16, "micro_batch_tokens": 16}
    drawn = masks(equal, monkeypatch, [(1, 0)], batch=quarters)
    whole = masks(equal, monkeypatch, [(1, 0)])
    assert len(drawn) == 4 * len(whole)
    assert len(set(drawn)) == len(drawn)


def test_masks_differ_between_workers(
    equal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = {"sentences": 16, "micro_batch_tokens": 32}
    alone = masks(equal, monkeypatch, [(1, 0)], batch=halves)
    second = masks(equal, monkeypatch, [(1, 0)], batch=halves, rank=1)
    # The second worker has the second half, and the masks that one process gives it.
    assert second == alone[len(alone) // 2 :]
    assert set(second).isdisjoint(alone[: len(alone) // 2])


def test_halves_of_a_micro_batch_that_did_not_fit_have_masks_of_their_own(
    equal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a place of its own in the batch, which the seed of its dropout follows from."""
    one = tiny.trainer(equal, equal / "none", dropout=0.3, batch=HALVES)
    places: list[int] = []
    failed: list[bool] = []
    manual_seed = torch.manual_seed

    def spy(seed: int) -> torch.Generator:
        places.append(seed)
        return manual_seed(seed)

    add = Updater._add_gradient

    def first_fails(self: Updater, *arguments: Any) -> Tensor | None:
        if not failed:
            failed.append(True)
            return None
        return add(self, *arguments)

    monkeypatch.setattr(torch, "manual_seed", spy)
    monkeypatch.setattr(Updater, "_add_gradient", first_fails)
    make_update(one.updater, one.train, np.arange(16), Moment(1, 0, 1e-9))
    assert len(places) == len(set(places)) >= 4


def test_validation_drops_nothing(task: Path) -> None:
    one = tiny.trainer(task, task / "none", dropout=0.5)
    make_update(one.updater, one.train, np.arange(16), Moment(1, 0, 1e-9))
    first, second = (one.updater.validate(one.valid) for _ in range(2))
    assert first == second
    without = tiny.trainer(task, task / "none", dropout=0.0)
    without.network.load_state_dict(one.network.state_dict())
    assert without.updater.validate(one.valid) == pytest.approx(first, abs=1e-12)


def test_dropout_is_where_the_paper_has_it(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both embeddings, each convolution's input and the decoder's output (section 4.2)."""
    counts: list[int] = []
    one = tiny.trainer(task, task / "none", dropout=0.25)
    draw = dropout.random_bits

    def spy(count: int) -> Tensor:
        counts.append(count)
        bits: Tensor = draw(count)
        return bits

    monkeypatch.setattr(dropout, "random_bits", spy)
    source, previous = torch.full((1, 5), 4), torch.full((1, 7), 4)
    one.network.train()(source, previous)
    # Embedding and one block of the encoder; embedding, two blocks and output of the decoder.
    assert counts == [16 * tokens for tokens in (5, 5, 7, 7, 7, 7)]
