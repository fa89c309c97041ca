"""Several workers that train together, without torchrun: processes of this machine and gloo."""

import faulthandler
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import Mock

import torch
from torch import Tensor

from convs2s.training.launch import worker_environment
from convs2s.training.workers import Workers, joined

Result = TypeVar("Result")

SECONDS = 120.0
"""How long workers may take; then each prints where it is and ends, and the test fails."""


class KilledError(Exception):
    """A worker was killed."""


def forking() -> ForkServerContext:
    """Return what starts processes in a moment.

    They are forked from one that has loaded torch, and never ran it: that does not survive a fork.
    Each optimizer loads torch._dynamo, which takes a second.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.invariants.test_training_workers", "torch._dynamo"]
    )
    return context


def start(
    folder: Path, count: int, function: Callable[..., Result], *arguments: Any
) -> list[Result]:
    """Return what the function returns in each worker; ``folder`` is new for each call.

    As under torchrun, a worker whose function has returned or failed ends. A failure of one is
    raised here once all have ended.
    """
    folder.mkdir()
    shared = worker_environment(folder) | {"WORLD_SIZE": str(count)}
    workers = []
    for rank in range(count):
        here, there = forking().Pipe(duplex=False)
        own = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        process = forking().Process(
            target=_work, args=(there, own, function, arguments)
        )
        process.start()
        there.close()
        workers.append((process, here))
    outcomes = []
    for process, here in workers:
        try:
            outcomes.append(here.recv())
        except EOFError:
            process.join()
            assert process.exitcode == -signal.SIGKILL, "a worker took too long"
            outcomes.append((None, KilledError()))
    for process, _ in workers:
        process.join()
    for _, error in outcomes:
        if error is not None:
            raise error
    return [result for result, _ in outcomes]


def _work(
    end: Connection,
    environment: dict[str, str],
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        outcome: tuple[Any, BaseException | None] = (function(*arguments), None)
    except BaseException as error:
        outcome = (None, error)
    end.send(outcome)


def meet(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call the function with the workers; for tests of what is below ``train``."""
    with joined("cpu") as workers:
        return function(workers, *arguments)


class Apart(Workers):
    """One of several workers, which meets nobody: the others have what it has."""

    def check_same(self, parameters: Iterable[Tensor]) -> None:
        """Find nothing that differs."""

    def start_sum(self, tensor: Tensor) -> Any:
        tensor.mul_(self.count)
        return Mock()  # for which nobody waits

    def totals(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def least(self, number: int) -> int:
        return number
