"""Which kernel is the fastest for training a network on this machine.

What wins on one processor loses on another. The first training of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.

The shapes that most of the arithmetic is in stand for all, their large sides cut: how fast a kernel
is depends on the rows much more than on these.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.measurements import least_seconds, measured_here
from convs2s.models.layers import PlainOutput, WeightNormalized

FAVOR: dict[Kernel, float] = {"blas": 1.05}
"""By how much another kernel must be faster than torch's own library: less is noise."""

HEAVIEST = 2  # Shapes that are measured
TRAINED_ROWS = 1024  # Of a product: with fewer, one kernel's start weighs more than another's
MOST_INPUTS, MOST_OUTPUTS = 1024, 512  # Sides of a weight that is measured


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

    For errors see `measured_here`.
    """
    shapes = sorted((product.outputs, product.inputs, product.count) for product in products)
    rates = measured_here(["training", *shapes], lambda: training_rates(products))
    return max(matmul.kernels(), key=lambda name: rates.get(name, 0.0) * FAVOR.get(name, 1.0))


def training_rates(products: Sequence[Product]) -> dict[Kernel, float]:
    """Return operations a second of each kernel over these products, forward and backward."""
    shapes = heaviest(products, MOST_INPUTS, MOST_OUTPUTS)

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


def heaviest(products: Sequence[Product], inputs: int, outputs: int) -> list[Product]:
    """Return the shapes, cut to so many inputs and outputs, in which most of the arithmetic is.

    A shape's ``count`` is how many of it have the arithmetic of all that are cut to it, rounded.
    """
    total: Counter[tuple[int, int]] = Counter()
    for product in products:
        shape = min(product.inputs, inputs), min(product.outputs, outputs)
        total[shape] += product.multiplications
    return [
        Product(*shape, max(1, round(number / (shape[0] * shape[1]))))
        for shape, number in total.most_common(HEAVIEST)
    ]
