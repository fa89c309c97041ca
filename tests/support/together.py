"""Several workers that train together, without torchrun: processes of this machine and gloo."""

import faulthandler
import os
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import torch

from convs2s.training.identity import TrainingJob
from convs2s.training.launch import worker_environment
from convs2s.training.run import train
from convs2s.training.workers import joined

Result = TypeVar("Result")

SECONDS = 120.0
"""How long workers may take; then each prints where it is, and the test fails."""


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
    environment = worker_environment(folder) | {
        "WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": "1",
    }
    context = forking()
    ends = []
    processes = []
    for rank in range(count):
        here, there = context.Pipe(duplex=False)
        ranked = environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        process = context.Process(
            target=_enter, args=(there, ranked, function, arguments)
        )
        process.start()
        there.close()
        ends.append(here)
        processes.append(process)
    try:
        outcomes = [_outcome(end) for end in ends]
    except TimeoutError:
        for process in processes:
            process.kill()
        raise
    for process in processes:
        process.join()
    for _, error in outcomes:
        if error is not None:
            raise error
    return [result for result, _ in outcomes]


def _outcome(end: Connection) -> tuple[Any, BaseException | None]:
    """Return what a worker returned, or the error that it ended with."""
    if not end.poll(SECONDS + 10):
        raise TimeoutError(f"a worker has not ended after {SECONDS:g} s")
    try:
        outcome: tuple[Any, BaseException | None] = end.recv()
    except EOFError:
        return None, KilledError()
    return outcome


def _enter(
    end: Connection,
    environment: dict[str, str],
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    faulthandler.dump_traceback_later(SECONDS)
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


def train_together(folder: Path, count: int, job: TrainingJob) -> None:
    """Train with this many workers."""
    start(folder, count, train, job)
