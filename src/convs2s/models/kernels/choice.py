"""Which kernel is the fastest for training a network on this machine.

What wins on one processor loses on another. The first training of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.

The shape that most of the arithmetic is in stands for all, its large sides cut: how fast a kernel
is depends on the rows much more than on these.
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
"""By how much another kernel must be faster than torch's own library.

Kernels round differently: noise of the machine, of up to 7%, must not choose.
"""

TRAINED_ROWS = 1024  # Of a product: with fewer, one kernel's start weighs more than another's
MOST_INPUTS = 1024  # Sides of a weight that is measured
MOST_OUTPUTS = 512

SHARED_SECONDS = 0.5  # that all kernels share, unless ``LEAST_ROUNDS`` take longer
LEAST_ROUNDS = 5  # Turns of each kernel; the first one sets up
MOST_ROUNDS = 30

ProductSizes = Counter[tuple[int, int]]
"""Inputs and outputs of weights, large ones cut -> the numbers of all weights that are cut to it,
by which each row is multiplied."""


def products_of(network: nn.Module) -> ProductSizes:
    """Return the products of a network's maps that ``linear`` computes."""
    products: ProductSizes = Counter()
    for module in network.modules():
        if isinstance(module, WeightNormalized | PlainOutput):
            weight = module.weight()
            outputs, inputs = weight.shape
            cut = (min(inputs, MOST_INPUTS), min(outputs, MOST_OUTPUTS))
            products[cut] += weight.numel()
    return products


def fastest_kernel(products: ProductSizes) -> Kernel:
    """Return the fastest kernel of training for these products with this process's threads.

    It goes by what this user has first measured on such a processor, by this version of torch and
    with as many threads. A UserError: the cache cannot be written, or is damaged.
    """
    kernels = matmul.kernels()
    if not products or "onednn" not in kernels:  # without products: a network of other layers
        return "blas"
    rates = _known_rates(products)
    if rates.get("onednn", 0.0) > FAVOR_OF_BLAS * rates.get("blas", 0.0):
        return "onednn"
    return "blas"


def _known_rates(products: ProductSizes) -> dict[str, float]:
    """Return ``training_rates`` out of the user's cache folder, measured where it has none."""
    shape = _heaviest(products)
    machine = [processor(), torch.__version__, torch.get_num_threads()]
    key = json.dumps([*machine, "training", shape])
    folder = _cache_folder()
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
                rates = training_rates(products)
                kept[key] = {str(kernel): rate for kernel, rate in rates.items()}
                write_json(path, kept)
    return kept[key]


def _cache_folder() -> Path:
    stated = os.environ.get("XDG_CACHE_HOME")
    if stated:
        return Path(stated) / "convs2s"
    try:
        return Path.home() / ".cache" / "convs2s"
    except RuntimeError:  # a user whom the system does not know, as in some containers
        raise UserError("no folder to keep measurements in: set XDG_CACHE_HOME") from None


def _heaviest(products: ProductSizes) -> tuple[int, int]:
    """Return the inputs and outputs of the weight that is measured."""
    ((shape, _),) = products.most_common(1)
    return shape


def training_rates(products: ProductSizes) -> dict[Kernel, float]:
    """Return operations a second of each kernel over these products, forward and backward.

    Kernels take turns, and the least processor time of each counts, that of all threads: other work
    on the machine slows down none alone.
    """
    inputs, outputs = _heaviest(products)
    x = torch.ones(TRAINED_ROWS, inputs, requires_grad=True)
    weight = torch.ones(outputs, inputs, requires_grad=True)
    bias = torch.zeros(outputs, requires_grad=True)
    gradient = torch.ones(TRAINED_ROWS, outputs)

    def train() -> object:
        y = matmul.linear(x, weight, bias)
        return torch.autograd.grad(y, (x, weight, bias), gradient)

    least = dict.fromkeys(matmul.kernels(), math.inf)  # seconds
    before = matmul.in_use()
    end = time.perf_counter() + SHARED_SECONDS
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for kernel, seconds in least.items():
            matmul.use(kernel)
            # Of all clocks, others on the machine change this one least.
            now = timeit(train, timer=time.process_time, number=1)
            least[kernel] = min(seconds, now)
    matmul.use(before)
    # A multiplication and an addition each for the output, the input's and the weight's gradient.
    operations = 6 * TRAINED_ROWS * inputs * outputs
    return {kernel: operations / seconds for kernel, seconds in least.items()}
