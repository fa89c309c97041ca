"""Of eight workers, one that runs out of memory, or ends: it starts over, or all end."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.errors import LostWorkerError
from convs2s.training import workers as workers_module
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from convs2s.training.workers import ALONE, Workers, joined
from tests.support import tiny
from tests.support.tiny import make_update
from tests.support.together import meet, start

COUNT = 8
VICTIM = 5
ROWS = np.arange(48)


def trainer_of(task: Path, workers: Workers = ALONE) -> Trainer:
    limits = {"sentences": 64, "micro_batch_tokens": 32}
    return tiny.trainer(task, task / "none", workers=workers, batch=limits)


def update(one: Trainer, number: int, rows: Any = ROWS) -> None:
    make_update(one.updater, one.train, rows, Moment(1, number, 0.25))


@contextmanager
def running_out(micro_batch: int, backward: bool) -> Iterator[None]:
    """Have memory run out once, before a backward pass or almost at its end."""
    calls = iter(range(1000))
    add = Updater._add_gradient

    def fail(_: Tensor) -> None:
        raise torch.OutOfMemoryError

    def spied(self: Updater, *arguments: Any) -> Tensor | None:
        if next(calls) != micro_batch:
            return add(self, *arguments)
        if not backward:
            return None
        hook = next(self.network.parameters()).register_hook(fail)
        try:
            return add(self, *arguments)
        finally:
            hook.remove()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_add_gradient", spied)
        yield


def parameters_after(workers: Workers, task: Path) -> list[list[Any]]:
    """Return the parameters after two updates, of which memory runs out in the second one."""
    workers_module.BUCKET = 600
    found = []
    # No worker has so many micro-batches.
    cases = [(999, False), (0, False), (0, True), (1, False), (1, True)]
    for micro_batch, backward in cases:
        trainer = trainer_of(task, workers)
        update(trainer, 0)
        mine = micro_batch if workers.rank == VICTIM else 999
        with running_out(mine, backward):
            update(trainer, 1)
        parameters = trainer.network.parameters()
        found.append([one.detach().numpy().copy() for one in parameters])
    return found


def test_eight_workers_have_the_same_sum_wherever_memory_runs_out(
    task: Path, tmp_path: Path
) -> None:
    first, *others = start(tmp_path / "meeting", COUNT, meet, parameters_after, task)
    for number, parameters in enumerate(first):
        for place, mine in enumerate(parameters):
            np.testing.assert_allclose(mine, first[0][place], rtol=0, atol=1e-12)
            for other in others:
                np.testing.assert_array_equal(mine, other[number][place])


class InjectedError(Exception):
    """What goes wrong in a worker."""


def raise_error(*_: object, **__: object) -> None:
    raise InjectedError


def kill(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS = [
    ("convs2s.training.update.Updater.load", raise_error),
    ("convs2s.training.workers.Workers.start_sum", kill),
    ("convs2s.training.workers.Workers.finish", raise_error),
    ("torch.nn.utils.clip_grad_norm_", kill),
    ("convs2s.training.update.Updater.read", raise_error),
]
"""Where a step of an update begins, and what the victim does there."""


def make_updates(task: Path, step: str, fail: Callable[..., None]) -> None:
    """Make updates in which the victim fails."""
    workers_module.BUCKET = 600
    workers_module.TIMEOUT = timedelta(seconds=60)
    with joined("cpu") as workers:
        trainer = trainer_of(task, workers)
        update(trainer, 0)
        if workers.rank == VICTIM:
            pytest.MonkeyPatch().setattr(step, fail)
        update(trainer, 1)
        update(trainer, 2)


@pytest.mark.parametrize(("step", "fail"), FAULTS)
def test_a_fault_of_a_worker_at_any_step_ends_all(
    task: Path, tmp_path: Path, step: str, fail: Callable[..., None]
) -> None:
    with pytest.raises(
        LostWorkerError, match=r"worker 0: another worker has ended \(.+\)"
    ):
        start(tmp_path / "meeting", COUNT, make_updates, task, step, fail)
