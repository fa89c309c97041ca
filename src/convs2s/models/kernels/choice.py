"""Which kernel is the fastest for a network's products on this machine: measured once, and kept.

A kernel that wins on one processor loses on another. The first training of a network's shapes with
a number of threads measures them, in a second or a few; the answer is kept in the user's cache
folder, so that later trainings there compute the same bytes.
"""

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import torch
from pydantic import TypeAdapter
from torch import nn

from convs2s.files import read_json, write_json
from convs2s.guards.library_faults import faults_of_file
from convs2s.guards.writing import writing
from convs2s.manifest import processor
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.quantized_linear import Precision, linear_map, runs_int8
from convs2s.models.layers import PlainOutput, WeightNormalized

REPEATS = 3

MOST_OPERATIONS = 2e10
"""Of all that is measured, unless it takes more for the least rows."""

LEAST_ROWS, MOST_ROWS = 64, 1024

DECODED_ROWS = 1, 5, 64, 320
"""Hypotheses at a time: one sentence greedily and with a beam of 5, and 64 sentences alike."""

MARGIN = 1.05
"""By how much another kernel must be faster than torch's own library: less is noise."""

Kept = dict[str, dict[Kernel, float]]
"""What was measured, and on what -> each kernel's operations a second."""


@dataclass(frozen=True)
class Product:
    """A product that a training makes.

    Attributes:
        inputs: columns of the rows.
        outputs: columns of the result.
        count: how many there are in a step.
    """

    inputs: int
    outputs: int
    count: int


def products(network: nn.Module) -> list[Product]:
    """Return the products of a network's maps that ``linear`` computes, equal ones as one."""
    shapes = Counter(
        tuple(module.weight().shape)
        for module in network.modules()
        if isinstance(module, WeightNormalized | PlainOutput)
    )
    return [Product(inputs, outputs, count) for (outputs, inputs), count in shapes.items()]


def rates(found: Sequence[Product]) -> dict[Kernel, float]:
    """Return operations a second of each kernel over these products, forth and back."""
    weights = sum(one.inputs * one.outputs for one in found)
    tries = 6 * weights * (REPEATS + 1) * len(matmul.kernels())
    rows = int(min(MOST_ROWS, max(LEAST_ROWS, MOST_OPERATIONS // tries)))
    seconds = dict.fromkeys(matmul.kernels(), 0.0)
    before = matmul.in_use()
    for one in found:
        for kernel, least in _least_seconds(one, rows).items():
            seconds[kernel] += one.count * least
    matmul.use(before)
    operations = 6 * rows * sum(one.count * one.inputs * one.outputs for one in found)
    return {kernel: operations / spent for kernel, spent in seconds.items()}


def _least_seconds(product: Product, rows: int) -> dict[Kernel, float]:
    """Return the least time of each kernel, which take turns."""
    x = torch.ones(rows, product.inputs, requires_grad=True)
    weight = torch.ones(product.outputs, product.inputs, requires_grad=True)
    bias = torch.zeros(product.outputs, requires_grad=True)
    gradient = torch.ones(rows, product.outputs)
    least = dict.fromkeys(matmul.kernels(), float("inf"))
    for number in range(REPEATS + 1):
        for kernel in least:
            matmul.use(kernel)
            spent = _seconds(
                lambda: torch.autograd.grad(
                    matmul.linear(x, weight, bias), (x, weight, bias), gradient
                )
            )
            if number:  # the first one sets up
                least[kernel] = min(least[kernel], spent)
    return least


def decoding_rates(found: Sequence[Product]) -> dict[Precision, list[float]]:
    """Return operations a second of each precision that this machine has, by ``DECODED_ROWS``."""
    return {
        name: [_decoding_rate(found, name, rows) for rows in DECODED_ROWS]
        for name in get_args(Precision)
        if name != "int8" or runs_int8()
    }


@torch.inference_mode()
def _decoding_rate(found: Sequence[Product], precision: Precision, rows: int) -> float:
    seconds = 0.0
    for one in found:
        weight, bias = torch.ones(one.outputs, one.inputs), torch.zeros(one.outputs)
        x = torch.ones(rows, one.inputs, dtype=torch.bfloat16 if precision == "bf16" else None)
        work = partial(linear_map(weight, bias, precision), x)
        seconds += one.count * min(_seconds(work) for _ in range(REPEATS + 1))
    return 2 * rows * sum(one.count * one.inputs * one.outputs for one in found) / seconds


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fastest(found: Sequence[Product]) -> Kernel:
    """Return the fastest kernel for these products with this process's threads.

    What any process of this user has measured on such a processor is taken from the cache folder.

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    path, key = cache_file(), _key(found)
    with writing(path), _alone(path.parent):
        kept = _kept(path)
        if key not in kept:
            kept |= {key: rates(found)}
            write_json(path, kept)
    measured = kept[key]
    return max(measured, key=lambda kernel: measured[kernel] * (MARGIN if kernel == "blas" else 1))


def cache_file() -> Path:
    """Return the file that keeps what was measured, below the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "convs2s" / "kernels.json"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process of this user measure at a time: the others take what it has found."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kept(path: Path) -> Kept:
    if not path.is_file():
        return {}
    with faults_of_file(str(path), "not what this program keeps there; remove it"):
        return TypeAdapter(Kept).validate_python(read_json(path))


def _key(found: Sequence[Product]) -> str:
    shapes = sorted((one.outputs, one.inputs, one.count) for one in found)
    machine = processor(), torch.__version__, torch.get_num_threads()
    return json.dumps([*machine, shapes])
