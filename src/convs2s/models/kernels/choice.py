"""Which kernel is the fastest for training a network on this machine.

What wins on one processor loses on another. The first training of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.

The shapes that most of the arithmetic is in stand for all, their large sides cut: how fast a kernel
is depends on the rows much more than on these.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from timeit import timeit

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import nn

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import writing
from convs2s.files.locks import wait_for_lock
from convs2s.files.text import read_json, write_json
from convs2s.manifest import processor
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.layers import PlainOutput, WeightNormalized

FAVOR: dict[Kernel, float] = {"blas": 1.25}
"""By how much another kernel must be faster than torch's own library.

Kernels round differently: noise of the machine, of up to 7%, must not choose.
"""

HEAVIEST = 2  # Shapes that are measured
TRAINED_ROWS = 1024  # Of a product: with fewer, one kernel's start weighs more than another's
MOST_INPUTS, MOST_OUTPUTS = 1024, 512  # Sides of a weight that is measured

SHARED_SECONDS = 0.5  # that all kernels share, unless ``LEAST_ROUNDS`` take longer
LEAST_ROUNDS, MOST_ROUNDS = 5, 30  # Turns of each kernel; the first one sets up


@dataclass(frozen=True)
class Product:
    """A weight (outputs, inputs) that rows are multiplied by, and how many a step has of it."""

    inputs: int
    outputs: int
    count: int

    @property
    def multiplications(self) -> int:
        """Of each row, in a step."""
        return self.inputs * self.outputs * self.count


def products_of(network: nn.Module) -> list[Product]:
    """Return the products of a network's maps that ``linear`` computes, equal ones as one."""
    shapes = Counter(
        tuple(module.weight().shape)
        for module in network.modules()
        if isinstance(module, WeightNormalized | PlainOutput)
    )
    return [Product(inputs, outputs, count) for (outputs, inputs), count in shapes.items()]


def fastest_kernel(products: Sequence[Product]) -> Kernel:
    """Return the fastest kernel of training for these products with this process's threads.

    It goes by what this user has first measured on such a processor, by this version of torch and
    with as many threads. A UserError: the cache cannot be written, or is damaged.
    """
    if not products:  # a network of other layers than this package's
        return matmul.kernels()[0]
    shapes = sorted((product.outputs, product.inputs, product.count) for product in products)
    machine = processor(), torch.__version__, torch.get_num_threads()
    key = json.dumps([*machine, "training", *shapes])
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "convs2s"
    except RuntimeError:  # a user whom the system does not know, as in some containers
        raise UserError("no folder to keep measurements in: set XDG_CACHE_HOME") from None
    path = folder / "kernels.json"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        # One process of this user measures at a time: the others take what it has measured.
        with (folder / "lock").open("w") as lock:
            with suppress(OSError):  # a file system without locks
                wait_for_lock(lock)
            kept: dict[str, dict[str, float]] = {}
            if path.is_file():
                with failures_of_file(str(path), "not what this program keeps there; remove it"):
                    kept = TypeAdapter(dict[str, dict[str, float]]).validate_python(read_json(path))
            if key not in kept:
                kept[key] = {str(name): rate for name, rate in training_rates(products).items()}
                write_json(path, kept)
    rates = kept[key]
    return max(matmul.kernels(), key=lambda name: rates.get(name, 0.0) * FAVOR.get(name, 1.0))


def training_rates(products: Sequence[Product]) -> dict[Kernel, float]:
    """Return operations a second of each kernel over these products, forward and backward."""
    shapes = heaviest(products)

    def update(kernel: Kernel, shape: Product) -> Callable[[], object]:
        """Return the product of a training's forward and backward pass."""
        x = torch.ones(TRAINED_ROWS, shape.inputs, requires_grad=True)
        weight = torch.ones(shape.outputs, shape.inputs, requires_grad=True)
        bias = torch.zeros(shape.outputs, requires_grad=True)
        gradient = torch.ones(TRAINED_ROWS, shape.outputs)

        def work() -> object:
            matmul.use(kernel)
            return torch.autograd.grad(matmul.linear(x, weight, bias), (x, weight, bias), gradient)

        return work

    before = matmul.in_use()
    works = {kernel: [update(kernel, shape) for shape in shapes] for kernel in matmul.kernels()}
    seconds = least_seconds(works)
    matmul.use(before)
    # A multiplication and an addition each for the output, the input's and the weight's gradient.
    operations = 6 * TRAINED_ROWS * sum(shape.multiplications for shape in shapes)
    counts = [shape.count for shape in shapes]
    return {kernel: operations / np.dot(counts, least) for kernel, least in seconds.items()}


def heaviest(products: Sequence[Product]) -> list[Product]:
    """Return the shapes, their large sides cut, in which most of the arithmetic is.

    A shape's ``count`` is how many of it have the arithmetic of all that are cut to it, rounded.
    """
    total: Counter[tuple[int, int]] = Counter()
    for product in products:
        shape = min(product.inputs, MOST_INPUTS), min(product.outputs, MOST_OUTPUTS)
        total[shape] += product.multiplications
    return [
        Product(*shape, max(1, round(number / (shape[0] * shape[1]))))
        for shape, number in total.most_common(HEAVIEST)
    ]


def least_seconds(
    works: Mapping[Kernel, Sequence[Callable[[], object]]],
) -> dict[Kernel, list[float]]:
    """Return the least processor time of each work of each kernel, that of all threads.

    Kernels take turns, and the least time counts: other work on the machine slows down none alone.
    """
    least = {name: [float("inf")] * len(several) for name, several in works.items()}
    end = time.perf_counter() + SHARED_SECONDS
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for name, several in works.items():
            for place, work in enumerate(several):
                # Of all clocks, others on the machine change this one least.
                seconds = timeit(work, timer=time.process_time, number=1)
                least[name][place] = min(least[name][place], seconds)
    return least
