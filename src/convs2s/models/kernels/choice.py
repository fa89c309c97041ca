"""Choose the fastest kernel, or bf16, for training a network on this machine's CPU.

Which kernel is fastest depends on the processor. So the kernels are measured when a network of new
shapes, or with a new number of threads, is trained for the first time. This takes less than a
second. The result is kept in the user's cache folder. Later trainings use the same kernel and
compute the same bytes.

Only the two shapes with most of the arithmetic are measured. Their large sides are cut, because the
speed of a kernel depends much more on the number of rows than on the sides of the weight. Do not
change the measurement without need: it might choose another kernel, which rounds differently, so
trainings would produce other models.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from timeit import timeit
from typing import Literal

import torch
from pydantic import TypeAdapter
from torch import nn

from convs2s.errors import failures_of_file
from convs2s.files.atomic import writing
from convs2s.files.cache import cache_folder
from convs2s.files.locks import wait_for_lock
from convs2s.files.text import read_json, write_json
from convs2s.manifest import processor
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.layers import PlainOutput, WeightNormalized

FAVOR = 1.25
"""Factor by which a kernel must be faster than BLAS, torch's own library, to be chosen.

bf16 must be faster than the fastest kernel by the same factor. Kernels and precisions round
differently, so the noise of a measurement, up to 7%, must not decide which one is used.
"""

HEAVIEST = 2
"""Number of shapes that are measured."""

TRAINED_ROWS = 1024
"""Rows of a measured product. With fewer, the time to start a kernel would have more weight."""

MOST_INPUTS = 1024
MOST_OUTPUTS = 512
"""Maximum sides of a measured weight; larger ones are cut."""

SHARED_SECONDS = 0.5
"""Time for measuring all kernels together; ``LEAST_ROUNDS`` may take longer."""

LEAST_ROUNDS = 5
MOST_ROUNDS = 30
"""Minimum and maximum number of measurements of each kernel. The first one includes its setup."""


_MEASURED = TypeAdapter(dict[str, dict[str, float]])

ProductCounts = Mapping[tuple[int, int], int]
"""The number of matrix products of each shape; a shape is that of the weight, (outputs, inputs)."""


def products_of(network: nn.Module) -> ProductCounts:
    """Return the matrix products of a network that ``matmul.linear`` can compute."""
    products: Counter[tuple[int, int]] = Counter()
    for module in network.modules():
        if isinstance(module, WeightNormalized | PlainOutput):
            outputs, inputs = module.weight().shape
            products[outputs, inputs] += 1
    return products


def fastest_kernel(products: ProductCounts) -> Kernel:
    """Return the fastest kernel for training with these products and this process's threads.

    The result is that of this user's first measurement with the same processor, version of torch
    and number of threads.

    Raises:
        UserError: the cache cannot be written, or is damaged.
    """
    # An extension's network may have no products.
    if not products or "onednn" not in matmul.kernels():
        return "blas"
    rates = _kept_rates(products)
    return "onednn" if rates["onednn"] > FAVOR * rates["blas"] else "blas"


def is_bf16_faster(products: ProductCounts) -> bool:
    """Return whether bf16 is faster for training than every kernel; see `fastest_kernel`."""
    if not products:
        return False
    rates = _kept_rates(products, with_bf16=True)
    bf16 = rates.pop("bf16")
    return bf16 > FAVOR * max(rates.values())


def _kept_rates(
    products: ProductCounts, *, with_bf16: bool = False
) -> dict[str, float]:
    """Return the ``training_rates`` of this user's first measurement.

    They are read from ``kernels.json`` in the user's cache folder, or measured if they are not
    there. The file maps a key of processor, version of torch, threads and shapes to the rates.
    """
    shapes = sorted((*shape, count) for shape, count in products.items())
    machine = [processor(), torch.__version__, torch.get_num_threads()]
    measured_as = "training and bf16" if with_bf16 else "training"
    key = json.dumps([*machine, measured_as, *shapes])
    folder = cache_folder()
    path = folder / "kernels.json"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        # Only one process of this user measures at a time. The others wait, then read its result.
        with (folder / "lock").open("w") as lock:
            with suppress(OSError):  # The file system may have no locks.
                wait_for_lock(lock)
            measured: dict[str, dict[str, float]] = {}
            if path.is_file():
                with failures_of_file(
                    str(path), "not what this program keeps there; remove it"
                ):
                    measured = _MEASURED.validate_python(read_json(path))
                    if key in measured:
                        # A missing name (KeyError) also counts as a damaged file.
                        names = candidates(with_bf16=with_bf16)
                        return {name: measured[key][name] for name in names}
            rates = training_rates(products, with_bf16=with_bf16)
            write_json(path, {**measured, key: rates})
    return rates


def candidates(*, with_bf16: bool) -> list[Kernel | Literal["bf16"]]:
    """Return the names of what is measured: the kernels, and bf16 if ``with_bf16``."""
    return [*matmul.kernels(), "bf16"] if with_bf16 else [*matmul.kernels()]


def training_rates(
    products: ProductCounts, *, with_bf16: bool = False
) -> dict[str, float]:
    """Measure the kernels; return the operations per second of each, forward and backward.

    If ``with_bf16``, bf16 is measured as if it were another kernel.

    The kernels take turns, so that other work on the machine slows down all of them. For each
    shape, the shortest time counts. It is the processor time of all threads together.
    """
    shapes = heaviest(products)
    passes = [_training_pass(*shape) for shape in shapes]
    names = candidates(with_bf16=with_bf16)
    # Name of a kernel -> the shortest time for each shape, in seconds.
    shortest = {name: [math.inf] * len(shapes) for name in names}
    before = matmul.in_use()
    end = time.perf_counter() + SHARED_SECONDS
    try:
        for number in range(MOST_ROUNDS):
            if number >= LEAST_ROUNDS and time.perf_counter() > end:
                break
            for name, seconds in shortest.items():
                if name != "bf16":
                    matmul.use(name)
                for index, work in enumerate(passes):
                    with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
                        # Processor time depends less on other processes than elapsed time.
                        duration = timeit(work, timer=time.process_time, number=1)
                    seconds[index] = min(seconds[index], duration)
    finally:
        matmul.use(before)
    multiplications = sum(math.prod(shape) * count for shape, count in shapes.items())
    # There are three products: the output, the gradient of the input and that of the weight. Each
    # takes as many additions as multiplications.
    operations = 3 * 2 * TRAINED_ROWS * multiplications
    rates: dict[str, float] = {}
    for name, seconds in shortest.items():
        total = 0.0  # seconds of all products, one after the other
        for count, seconds_of_shape in zip(shapes.values(), seconds, strict=True):
            total += count * seconds_of_shape
        rates[name] = operations / total
    return rates


def _training_pass(outputs: int, inputs: int) -> Callable[[], object]:
    """Return a function that computes a product and its gradients with the kernel in use."""
    x = torch.ones(TRAINED_ROWS, inputs, requires_grad=True)
    weight = torch.ones(outputs, inputs, requires_grad=True)
    bias = torch.zeros(outputs, requires_grad=True)
    gradient = torch.ones(TRAINED_ROWS, outputs)

    def work() -> object:
        y = matmul.linear(x, weight, bias)
        return torch.autograd.grad(y, (x, weight, bias), gradient)

    return work


def heaviest(products: ProductCounts) -> ProductCounts:
    """Return the shapes that account for most of the arithmetic, with their large sides cut.

    The count of a cut shape is chosen such that its products take as much arithmetic as all the
    products that were cut to this shape. It is rounded.
    """
    multiplications: Counter[tuple[int, int]] = Counter()
    for (outputs, inputs), count in products.items():
        shape = min(outputs, MOST_OUTPUTS), min(inputs, MOST_INPUTS)
        multiplications[shape] += outputs * inputs * count
    shapes = {}
    for (outputs, inputs), total in multiplications.most_common(HEAVIEST):
        shapes[outputs, inputs] = max(1, round(total / (outputs * inputs)))
    return shapes
