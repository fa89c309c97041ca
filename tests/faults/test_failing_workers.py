"""Of four workers, one that runs out of memory, or ends: it starts over, or all end."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from convs2s.errors import UserError
from convs2s.training import update as update_module
from convs2s.training import workers as workers_module
from convs2s.training.launch import worker_environment
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from convs2s.training.workers import ALONE, Workers, joined
from tests.support import tiny
from tests.support.together import meet, start
from tests.support.updates import make_update

COUNT = 4
VICTIM = 2
ROWS = np.arange(48)


def trainer_of(task: Path, workers: Workers = ALONE) -> Trainer:
    limits = {"sentences": 64, "micro_batch_tokens": 32}
    return tiny.trainer(task, task / "none", workers=workers, batch=limits)


def update(one: Trainer, number: int, rows: Any = ROWS) -> None:
    make_update(one.updater, one.train, rows, Moment(1, number, 0.25))


@contextmanager
def running_out(micro_batch: int) -> Iterator[None]:
    """Have memory run out once, almost at the end of a micro-batch's backward pass."""
    calls = iter(range(1000))
    add = Updater._add_gradient

    def fail(_: Tensor) -> None:
        raise torch.OutOfMemoryError

    def spied(self: Updater, *arguments: Any) -> Tensor | None:
        if next(calls) != micro_batch:
            return add(self, *arguments)
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
    for micro_batch in (999, 0, 1):
        trainer = trainer_of(task, workers)
        update(trainer, 0)
        with running_out(micro_batch if workers.rank == VICTIM else 999):
            update(trainer, 1)
        parameters = trainer.network.parameters()
        found.append([one.detach().numpy().copy() for one in parameters])
    return found


def test_workers_have_the_same_sum_wherever_memory_runs_out(
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


FAULTS: list[tuple[Any, str, Callable[..., None]]] = [
    (Updater, "load", raise_error),
    (Updater, "_loss", raise_error),
    (Workers, "start_sum", raise_error),
    (Workers, "start_sum", kill),
    (Workers, "finish", raise_error),
    (nn.utils, "clip_grad_norm_", raise_error),
    (update_module, "set_learning_rate", kill),
    (Updater, "read", raise_error),
]
"""Where a step of an update begins, and what the victim does there."""


def make_updates(task: Path, said: Path, owner: Any, name: str, fail: object) -> None:
    """Make updates in which the victim fails; write how this worker, named by RANK, ends."""
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = said.name
    ending = "nothing went wrong"
    try:
        with joined("cpu") as workers:
            trainer = trainer_of(task, workers)
            update(trainer, 0)
            if workers.rank == VICTIM:
                setattr(owner, name, fail)
            update(trainer, 1)
            update(trainer, 2)
    except (UserError, InjectedError) as error:
        ending = f"{type(error).__name__}: {error}"
    said.write_text(ending)


def exit_codes(task: Path, folder: Path) -> list[list[int | None]]:
    """Run all workers with each fault; return how they end, which each writes to a file."""
    workers_module.BUCKET = 600
    workers_module.TIMEOUT = timedelta(seconds=60)
    # Once here, so that the workers, forked from this process, need not load anything.
    update(trainer_of(task), 0, np.arange(8))
    fork = get_context("fork")
    found = []
    for number, fault in enumerate(FAULTS):
        place = folder / str(number)
        place.mkdir()
        os.environ.update(worker_environment(place) | {"WORLD_SIZE": str(COUNT)})
        workers = []
        for rank in range(COUNT):
            arguments = (task, place / str(rank), *fault)
            workers.append(fork.Process(target=make_updates, args=arguments))
            workers[-1].start()
        for worker in workers:
            worker.join()
        found.append([worker.exitcode for worker in workers])
    return found


def test_a_fault_of_a_worker_at_any_step_ends_all(task: Path, tmp_path: Path) -> None:
    [found] = start(tmp_path / "meeting", 1, exit_codes, task, tmp_path)
    for number, ((_, name, fail), codes) in enumerate(zip(FAULTS, found, strict=True)):
        for rank, code in enumerate(codes):
            said = tmp_path / str(number) / str(rank)
            if rank == VICTIM and fail is kill:
                assert code == -signal.SIGKILL, name
                continue
            assert code == 0, name
            ending = r"LostWorkerError: worker \d: another worker has ended"
            if rank == VICTIM:
                ending = "InjectedError: "
            assert re.match(ending, said.read_text()), name
