"""Choose the fastest kernel for training a network on this machine.

The kernel that is fastest on one processor is slower than others on another. So the kernels are
measured, which takes less than a second, when a network of new shapes is trained for the first time
with a number of threads. The result is kept in the user's cache folder. Later trainings use the
same kernel and compute the same bytes.

Only one shape is measured: the one that accounts for most of the arithmetic. Its large sides are
cut, as the speed of a kernel depends much more on the number of rows than on the sides of the
weight.
"""

import json
import math
import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from timeit import timeit

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

FAVOR_OF_BLAS = 1.25
"""Factor by which another kernel must be faster than BLAS, torch's own library, to be chosen.

Kernels round differently. The noise of a measurement, up to 7%, must not decide which one is used.
"""

TRAINED_ROWS = 1024
"""Rows of the measured product. With fewer, the time to start a kernel would have more weight."""

MOST_INPUTS = 1024
MOST_OUTPUTS = 512
"""Maximum sides of the measured weight; larger ones are cut."""

SHARED_SECONDS = 0.5
"""Time for measuring all kernels together; ``LEAST_ROUNDS`` may take longer."""

LEAST_ROUNDS = 5
MOST_ROUNDS = 30
"""Minimum and maximum number of measurements of each kernel. The first one includes its setup."""

ProductSizes = Counter[tuple[int, int]]
"""Sides of weights (inputs, outputs) after cutting -> number of values in all weights of these
sides, which is proportional to the arithmetic that they take."""


def products_of(network: nn.Module) -> ProductSizes:
    """Return the sizes of the matrix products in a network that ``matmul.linear`` can compute."""
    products: ProductSizes = Counter()
    for module in network.modules():
        if isinstance(module, WeightNormalized | PlainOutput):
            weight = module.weight()
            outputs, inputs = weight.shape
            cut_inputs = min(inputs, MOST_INPUTS)
            cut_outputs = min(outputs, MOST_OUTPUTS)
            products[cut_inputs, cut_outputs] += weight.numel()
    return products


def fastest_kernel(products: ProductSizes) -> Kernel:
    """Return the fastest kernel for training with these products and this process's threads.

    It depends on the first measurement by this user with the same processor, version of torch and
    number of threads.

    Raises:
        UserError: the cache cannot be written, or is damaged.
    """
    kernels = matmul.kernels()
    # An extension's network may consist of other layers and have no products.
    if not products or "onednn" not in kernels:
        return "blas"
    rates = _known_rates(products)
    onednn = rates.get("onednn", 0.0)
    blas = rates.get("blas", 0.0)
    if onednn > FAVOR_OF_BLAS * blas:
        return "onednn"
    return "blas"


def _known_rates(products: ProductSizes) -> dict[str, float]:
    """Return ``training_rates`` from the user's cache folder; measure them if they are not there.

    ``kernels.json`` there maps a key of processor, version of torch, threads and shape to the rate
    of each kernel.
    """
    shape = _heaviest(products)
    machine = [processor(), torch.__version__, torch.get_num_threads()]
    key = json.dumps([*machine, "training", shape])
    folder = _cache_folder()
    path = folder / "kernels.json"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        # Only one process of this user measures at a time. The others wait, and read its result.
        with (folder / "lock").open("w") as lock:
            with suppress(OSError):  # The file system may have no locks.
                wait_for_lock(lock)
            kept: dict[str, dict[str, float]] = {}
            if path.is_file():
                with failures_of_file(str(path), "not what this program keeps there; remove it"):
                    content = read_json(path)
                    kept = TypeAdapter(dict[str, dict[str, float]]).validate_python(content)
            if key not in kept:
                rates = training_rates(products)
                kept[key] = {str(kernel): rate for kernel, rate in rates.items()}
                write_json(path, kept)
    return kept[key]


def _cache_folder() -> Path:
    """Return the user's cache folder for this program, which may not exist yet."""
    cache_home = os.environ.get("XDG_CACHE_HOME")
    if cache_home:
        return Path(cache_home) / "convs2s"
    try:
        return Path.home() / ".cache" / "convs2s"
    except RuntimeError:  # The user has no home folder, as in some containers.
        raise UserError(
            "there is no folder to keep measurements in, as the user has no home folder: set the "
            "environment variable XDG_CACHE_HOME"
        ) from None


def _heaviest(products: ProductSizes) -> tuple[int, int]:
    """Return the inputs and outputs of the shape that accounts for most of the arithmetic."""
    ((shape, _),) = products.most_common(1)
    return shape


def training_rates(products: ProductSizes) -> dict[Kernel, float]:
    """Measure the kernels; return the operations per second of each, forward and backward.

    Kernels take turns, so that other work on the machine slows down all of them. For each, the
    shortest time counts. It is the processor time of all threads together.
    """
    inputs, outputs = _heaviest(products)
    x = torch.ones(TRAINED_ROWS, inputs, requires_grad=True)
    weight = torch.ones(outputs, inputs, requires_grad=True)
    bias = torch.zeros(outputs, requires_grad=True)
    gradient = torch.ones(TRAINED_ROWS, outputs)

    def train() -> object:
        """Compute a product and its gradients."""
        y = matmul.linear(x, weight, bias)
        return torch.autograd.grad(y, (x, weight, bias), gradient)

    shortest = dict.fromkeys(matmul.kernels(), math.inf)  # seconds
    before = matmul.in_use()
    end = time.perf_counter() + SHARED_SECONDS
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for kernel, seconds in shortest.items():
            matmul.use(kernel)
            # Processor time depends less on other processes of the machine than elapsed time.
            now = timeit(train, timer=time.process_time, number=1)
            shortest[kernel] = min(seconds, now)
    matmul.use(before)
    # There are three products: for the output, and for the gradients of the input and the weight.
    # Each takes a multiplication and an addition per row, input and output.
    operations = 6 * TRAINED_ROWS * inputs * outputs
    return {kernel: operations / seconds for kernel, seconds in shortest.items()}
