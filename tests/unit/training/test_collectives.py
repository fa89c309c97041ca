"""Whatever becomes of a worker: the same exchanges in the same order everywhere, or an end of all.

torch's fake process group stands for many workers, one after the other; gloo runs eight for real.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
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
from convs2s.training.progress import EpochProgress
from convs2s.training.schedule import Moment
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from convs2s.training.workers import Workers, joined
from tests.support import tiny
from tests.support.together import meet, start
from tests.support.updates import make_update

COUNT, VICTIM = 8, 5
BATCH = {"sentences": 64, "micro_batch_tokens": 32}

Exchanged = list[tuple[int, torch.dtype]]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare(tmp_path_factory.mktemp("task"), pairs=64 * 9)


@dataclass(frozen=True)
class Shortage:
    """Where memory runs out: at which micro-batch of which worker, and in which pass."""

    rank: int
    micro_batch: int
    backward: bool


@contextmanager
def running_out(trainer: Trainer, shortage: Shortage | None) -> Iterator[None]:
    """Have memory run out once while the block runs, a backward pass's almost at its end."""
    calls: list[int] = []
    add = Updater._add_gradient

    def spied(self: Updater, *arguments: Any) -> Tensor | None:
        calls.append(1)
        is_here = shortage is not None and len(calls) == shortage.micro_batch + 1
        if shortage is None or not is_here or self.workers.rank != shortage.rank:
            return add(self, *arguments)
        if not shortage.backward:
            return None
        hook = next(self.network.parameters()).register_hook(fail)
        try:
            return add(self, *arguments)
        finally:
            hook.remove()

    def fail(_: Tensor) -> None:
        raise torch.OutOfMemoryError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_add_gradient", spied)
        yield


# ---- many workers, each alone with torch's fake process group ----


def exchanges_of_an_epoch(
    task: Path, folder: Path, workers: Workers, shortages: Sequence[Shortage | None]
) -> Exchanged:
    """Return what a worker exchanges in an epoch whose updates run out of memory one by one."""
    # Seconds, for this alone.
    from torch.testing._internal.distributed.fake_pg import FakeStore

    made: Exchanged = []
    all_reduce, begin = torch.distributed.all_reduce, Updater.start
    failed: list[bool] = []  # of the running update, each try

    def reduce(tensor: Tensor, **options: Any) -> Any:
        made.append((tensor.numel(), tensor.dtype))
        return all_reduce(tensor, **options)

    def totals(self: Workers, values: Sequence[float]) -> list[float]:
        """Sum as if all workers had the same values, which the fake group leaves as they are."""
        tensor = torch.tensor(values, dtype=torch.float64)
        self.finish_sum(self.start_sum(tensor))
        return [self.count * value for value in values]

    def flags(self: Workers, given: Sequence[bool]) -> list[bool]:
        self.totals([0.0] * len(given))
        return [failed.pop()] if len(given) == 1 else list(given)

    def check_same(self: Workers, parameters: Any) -> None:
        # All have the same, which no values of one can say.
        self.totals([0.0] * self.count)

    def start_update(self: Updater, loaded: Any, moment: Moment) -> Any:
        shortage = shortages[moment.batch]
        failed[:] = [False] if shortage is None else [False, True]
        with running_out(trainer, shortage):
            return begin(self, loaded, moment)

    torch.distributed.init_process_group(
        "fake", store=FakeStore(), rank=workers.rank, world_size=workers.count
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers_module, "BUCKET", 600)
            patch.setattr(torch.distributed, "all_reduce", reduce)
            patch.setattr(Workers, "totals", totals)
            patch.setattr(Workers, "check_same", check_same)
            patch.setattr(Workers, "flags", flags)
            patch.setattr(Updater, "start", start_update)
            patch.setattr(EpochProgress, "is_due", lambda _: False)
            trainer = tiny.trainer(
                task, folder, workers=workers, batch=BATCH, maximum_epochs=1
            )
            trainer.run()
            assert trainer.state.updates == len(shortages)
            assert failed == []
    finally:
        torch.distributed.destroy_process_group()
    return made


def test_every_worker_makes_the_same_exchanges_whoever_runs_out_of_memory(
    task: Path, tmp_path: Path
) -> None:
    shortages = [None] + [
        Shortage(rank, micro_batch, backward)
        for rank in (0, COUNT - 1)
        for micro_batch in (0, 1)
        for backward in (False, True)
    ]
    found = [
        exchanges_of_an_epoch(
            task, tmp_path / str(rank), Workers(rank, COUNT), shortages
        )
        for rank in range(COUNT)
    ]
    assert len(found[0]) > 5 * len(shortages)
    assert {tuple(exchanged) for exchanged in found} == {tuple(found[0])}


# ---- eight workers ----


class InjectedError(Exception):
    """What goes wrong in a worker."""


STEPS: dict[str, tuple[Any, str]] = {
    "load": (Updater, "load"),
    "forward": (Updater, "_loss"),
    "exchange": (Workers, "start_sum"),
    "wait": (Workers, "finish_sum"),
    "agree": (Workers, "flags"),
    "clip": (nn.utils, "clip_grad_norm_"),
    "step": (update_module, "set_learning_rate"),
    "read": (Updater, "read"),
}
"""Steps of an update, by where each begins."""


@contextmanager
def failing_at(step: str, fail: Callable[[], None]) -> Iterator[None]:
    """Have something go wrong where a step begins."""
    owner, name = STEPS[step]
    original = getattr(owner, name)

    def failing(*arguments: Any, **options: Any) -> Any:
        fail()
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, failing)
        yield


def three_updates(trainer: Trainer, step: str, fail: Callable[[], None]) -> None:
    """Make three updates; in the second one the victim fails at a step."""
    for number in range(3):
        rows, moment = np.arange(48), Moment(1, number, 0.25)
        if number == 1 and trainer.workers.rank == VICTIM:
            with failing_at(step, fail):
                make_update(trainer.updater, trainer.train, rows, moment)
        else:
            make_update(trainer.updater, trainer.train, rows, moment)


def parameters_after(workers: Workers, task: Path) -> list[list[Any]]:
    """Return the parameters after two updates, of which memory runs out in the second one."""
    shortages = [
        Shortage(VICTIM, number, back) for number in (0, 1) for back in (False, True)
    ]
    workers_module.BUCKET, found = 600, []
    for shortage in (None, *shortages):
        trainer = tiny.trainer(task, task / "none", workers=workers, batch=BATCH)
        for number in range(2):
            with running_out(trainer, shortage if number else None):
                make_update(
                    trainer.updater,
                    trainer.train,
                    np.arange(48),
                    Moment(1, number, 0.25),
                )
        found.append(
            [one.detach().numpy().copy() for one in trainer.network.parameters()]
        )
    return found


def test_eight_workers_start_over_wherever_memory_runs_out(
    task: Path, tmp_path: Path
) -> None:
    first, *others = start(tmp_path / "meeting", COUNT, meet, parameters_after, task)
    undisturbed = first[0]
    for scenario, parameters in enumerate(first):
        for mine, expected in zip(parameters, undisturbed, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-12)
        for other in others:
            for mine, its in zip(parameters, other[scenario], strict=True):
                np.testing.assert_array_equal(mine, its)


def raise_error() -> None:
    raise InjectedError


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS = [
    *((step, raise_error) for step in STEPS),
    *((step, kill) for step in ("exchange", "step")),
]


def end_of_updates(task: Path, step: str, fail: Callable[[], None]) -> str:
    """Make updates in which the victim fails; return how this worker ends."""
    try:
        with joined("cpu") as workers:
            trainer = tiny.trainer(task, task / "none", workers=workers, batch=BATCH)
            three_updates(trainer, step, fail)
    except (UserError, InjectedError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing went wrong"


def endings(task: Path, folder: Path) -> list[list[tuple[int, str]]]:
    """Return how each worker ends with each fault: its exit status, and what it says."""
    workers_module.BUCKET, workers_module.TIMEOUT = 600, timedelta(seconds=60)
    # Once here, so that the workers, forked from this process, need not load anything.
    trainer = tiny.trainer(task, task / "none", batch=BATCH)
    make_update(trainer.updater, trainer.train, np.arange(8), Moment(1, 0, 0.25))
    found = []
    for number, (step, fail) in enumerate(FAULTS):
        place = folder / str(number)
        place.mkdir()
        os.environ.update(worker_environment(place) | {"WORLD_SIZE": str(COUNT)})
        processes = []
        for rank in range(COUNT):
            processes.append(os.fork())
            if processes[-1] == 0:
                os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank)})
                (place / f"{rank}.txt").write_text(end_of_updates(task, step, fail))
                os._exit(0)
        codes = [
            os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            for process in processes
        ]
        files = [place / f"{rank}.txt" for rank in range(COUNT)]
        said = [file.read_text() if file.exists() else "" for file in files]
        found.append(list(zip(codes, said, strict=True)))
    return found


def test_a_fault_of_a_worker_at_any_step_ends_all(task: Path, tmp_path: Path) -> None:
    [found] = start(tmp_path / "meeting", 1, endings, task, tmp_path)
    for (step, fail), ends in zip(FAULTS, found, strict=True):
        victims = ends.pop(VICTIM)
        assert victims == (
            (0, "InjectedError: ") if fail is raise_error else (-signal.SIGKILL, "")
        )
        for code, said in ends:
            assert code == 0, step
            assert re.match(
                r"UserError: worker \d: another worker has ended \(", said
            ), step
