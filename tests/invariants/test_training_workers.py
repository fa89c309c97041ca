"""Several workers make the updates of one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convs2s.config.model import BatchLimits
from convs2s.data.batches import plan_batches
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.training import workers as workers_module
from convs2s.training.loading import permuted_sources, split_batch
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.workers import Workers
from tests.invariants.gpu import Again
from tests.support import tiny
from tests.support.tiny import make_update, short_of_memory
from tests.support.together import meet, start


def some_updates(workers: Workers, task: Path) -> tuple[list[Any], list[float]]:
    """Return the parameters after the updates of an epoch and one more, and losses of validation.

    That one is of a single pair, so that the second worker has none.
    """
    workers_module.BUCKET = 600
    if workers.count > 1:
        # They are told that they differ, and nothing hangs.
        with pytest.raises(UserError, match="the workers' parameters differ"):
            tiny.trainer(task, task / "none", workers=workers, seed=1 + workers.rank)
    one = tiny.trainer(
        task,
        task / "none",
        workers=workers,
        # A worker that replays starts its sums later than one that does not.
        recording=Again if workers.rank else None,
        batch={"micro_batch_tokens": 40},
    )
    permuted = permuted_sources(one.valid)
    losses = [one.updater.validate(one.valid, sources=permuted)]
    for number, rows in enumerate([*one.plan(1), np.array([3])]):
        make_update(one.updater, one.train, rows, Moment(1, number, 0.25))
    losses.append(one.updater.validate(one.valid))
    return [each.detach().numpy() for each in one.network.parameters()], losses


def test_two_workers_make_the_updates_of_one(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "BUCKET", 600)
    alone, losses = some_updates(Workers(), task)
    first, second = start(tmp_path / "meeting", 2, meet, some_updates, task)
    for mine, its, other in zip(alone, first[0], second[0], strict=True):
        np.testing.assert_allclose(its, mine, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(its, other)
    assert first[1] == second[1] == pytest.approx(losses, abs=1e-9)


def late_epoch(workers: Workers, task: Path, folder: Path) -> tuple[Any, ...]:
    """Train for an epoch whose figures are read late, as on a GPU; memory runs out once."""
    folder = folder / str(workers.rank)
    folder.mkdir()
    one = tiny.trainer(task, folder, workers=workers, maximum_epochs=1)
    one.reads_at_once = False
    meetings = []
    totals = Workers.totals

    def counted(workers: Workers, values: Sequence[float]) -> list[float]:
        meetings.append(one.state.updates)
        return totals(workers, values)

    # The second worker's first micro-batch does not fit.
    with pytest.MonkeyPatch.context() as patch, short_of_memory(workers.rank != 1):
        patch.setattr(Workers, "totals", counted)
        one.run()
    loss = one.state.history[0].train_loss
    return meetings, one.updater.limit, one.state.micro_batch_tokens, loss


def test_workers_wait_for_each_other_only_to_read_and_agree_on_what_fits(
    task: Path, tmp_path: Path
) -> None:
    first, second = start(tmp_path / "meeting", 2, meet, late_epoch, task, tmp_path)
    assert first == second
    meetings, limit, known, _ = first
    # At the end of the epoch's ten updates, and to validate.
    assert meetings == [10, 10]
    assert limit == known < 200


def test_a_training_of_two_workers_with_dropout_repeats_and_goes_on(
    task: Path, tmp_path: Path
) -> None:
    for name, epochs in (("a", 2), ("b", 1), ("b", 2)):
        model = tmp_path / name / "model.safetensors"
        job = tiny.job(task, model, tiny.settings(maximum_epochs=epochs))
        start(tmp_path / f"{name}{epochs}", 2, train, job)
    log = (tmp_path / "b/state/train.log").read_text("utf-8")
    assert "\ngoing on from " in log
    assert sha256(tmp_path / "a/model.safetensors") == sha256(model)
    assert '"workers": 2' in (tmp_path / "a/training.json").read_text("utf-8")


def test_workers_have_as_many_micro_batches_and_even_shares() -> None:
    """Of batches of WMT's recipes, of lengths as news have them: log-normal, 26 on average."""
    draw = np.random.default_rng(1)
    sources = draw.lognormal(3.1, 0.62, 10_000).clip(1, 170)
    targets = (sources * draw.lognormal(0.1, 0.22, 10_000)).clip(1, 175)
    lengths = np.column_stack([sources, targets]).astype(np.int64)
    limits = BatchLimits(sentences=256)
    plan = plan_batches(lengths[:, 0], lengths[:, 1], limits, draw)
    for workers in (1, 4, 16):
        slowest = 0
        mean = 0.0
        for rows in plan:
            parts = split_batch(rows, lengths[rows], 4000, workers)
            assert len(parts) % workers == 0
            assert [row for part in parts for row in part.rows] == list(rows)
            assert max(part.size for part in parts) <= 4000
            # Padded tokens of both sides.
            sizes = [len(part.rows) * lengths[part.rows].max(0).sum() for part in parts]
            slowest += max(sum(sizes[rank::workers]) for rank in range(workers))
            mean += sum(sizes) / workers
        assert slowest <= 1.05 * mean
