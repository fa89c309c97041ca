"""Several workers that train together, without torchrun: processes of this machine and gloo."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import torch

from convs2s.training.identity import TrainingJob
from convs2s.training.launch import worker_environment
from convs2s.training.run import train
from convs2s.training.workers import joined

Result = TypeVar("Result")


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
    """Return what the function returns in each worker; ``folder`` is new for each call."""
    folder.mkdir()
    environment = worker_environment(folder) | {
        "WORLD_SIZE": str(count),
        "OMP_NUM_THREADS": "1",
    }
    with ProcessPoolExecutor(count, mp_context=forking()) as pool:
        futures = [
            pool.submit(_enter, environment | _ranks(rank), function, arguments)
            for rank in range(count)
        ]
        return [future.result(timeout=120) for future in futures]


def _ranks(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank)}


def _enter(
    environment: dict[str, str],
    function: Callable[..., Result],
    arguments: Sequence[Any],
) -> Result:
    os.environ.update(environment)
    torch.set_num_threads(1)
    return function(*arguments)


def meet(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call the function with the workers; for tests of what is below ``train``."""
    with joined("cpu") as workers:
        return function(workers, *arguments)


def train_together(folder: Path, count: int, job: TrainingJob) -> None:
    """Train with this many workers."""
    start(folder, count, train, job)
