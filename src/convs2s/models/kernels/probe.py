"""How fast this machine computes a network's products, found out in less than a second.

The shapes that most of the arithmetic is in stand for all, their large sides cut: how fast a kernel
is depends on the rows much more than on these. The candidates take turns until the time is up, and
the least time of each counts, so that other work on the machine slows down none of them alone.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import nn

from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.quantized_linear import Precision, linear_map, runs_int8
from convs2s.models.layers import PlainOutput, WeightNormalized

Candidate = TypeVar("Candidate", bound=Hashable)

_SECONDS = 0.5
"""That all candidates share, unless ``LEAST_ROUNDS`` take longer."""

LEAST_ROUNDS, MOST_ROUNDS = 5, 30
"""Turns of each candidate; the first one sets up."""

HEAVIEST = 2
"""Shapes that are measured."""

TRAINED_ROWS = 1024
"""Rows of a product in training: with fewer, one kernel's start weighs more than another's."""

MOST_INPUTS, MOST_OUTPUTS = 1024, 512
"""Sides of a weight that is measured for training."""

MOST_DECODED_OUTPUTS = 2048
"""Likewise for decoding."""

MOST_READ = 1 << 27
"""Bytes of a network's other weights, at most, that are read between two uses of one."""

BYTES: Mapping[Precision, int] = {"fp32": 4, "bf16": 2, "int8": 1}
"""Of a weight in each precision."""


@dataclass(frozen=True)
class Product:
    """A product that a network makes.

    Attributes:
        inputs: columns of the rows.
        outputs: columns of the result.
        count: how many there are in a step.
    """

    inputs: int
    outputs: int
    count: int

    @property
    def multiplications(self) -> int:
        """Of each row, in a step."""
        return self.inputs * self.outputs * self.count


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
    shapes = heaviest(found, MOST_INPUTS, MOST_OUTPUTS)
    before = matmul.in_use()
    works = {kernel: [_training(shape, kernel) for shape in shapes] for kernel in matmul.kernels()}
    seconds = _least_seconds(works)
    matmul.use(before)
    return {kernel: _rate(shapes, 6 * TRAINED_ROWS, least) for kernel, least in seconds.items()}


def decoding_rates(
    found: Sequence[Product], rows: Iterable[int]
) -> dict[int, dict[Precision, float]]:
    """Return operations a second of each precision that this machine has, for numbers of rows.

    Before a weight comes in turn again all others of the network have been read: with few rows that
    is what takes the time, and the less the fewer bytes a weight has.

    Args:
        found: the products of a step.
        rows: hypotheses at a time.
    """
    shapes = heaviest(found, MOST_INPUTS, MOST_DECODED_OUTPUTS)
    maps = {name: [_map(shape, name) for shape in shapes] for name in precisions()}
    cases = [(count, name) for count in rows for name in maps]
    works: dict[tuple[int, Precision], list[Callable[[], object]]] = {
        (count, name): [
            partial(one, _rows(count, shape, name))
            for one, shape in zip(maps[name], shapes, strict=True)
        ]
        for count, name in cases
    }
    others = _other_weights(found)
    with torch.inference_mode():
        seconds = _least_seconds(works, lambda case: others[case[1]].sum())
    measured: dict[int, dict[Precision, float]] = {count: {} for count, _ in cases}
    for (count, name), least in seconds.items():
        measured[count][name] = _rate(shapes, 2 * count, least)
    return measured


def precisions() -> list[Precision]:
    """Return the precisions of decoding that this machine's CPU has."""
    return ["fp32", "bf16", "int8"] if runs_int8() else ["fp32", "bf16"]


def heaviest(found: Sequence[Product], inputs: int, outputs: int) -> list[Product]:
    """Return the shapes, cut to so many inputs and outputs, in which most of the arithmetic is.

    A shape's ``count`` is how many of it have the arithmetic of all that are cut to it, rounded.
    """
    total: Counter[tuple[int, int]] = Counter()
    for one in found:
        total[min(one.inputs, inputs), min(one.outputs, outputs)] += one.multiplications
    return [
        Product(*shape, max(1, round(number / (shape[0] * shape[1]))))
        for shape, number in total.most_common(HEAVIEST)
    ]


def _training(shape: Product, kernel: Kernel) -> Callable[[], object]:
    x = torch.ones(TRAINED_ROWS, shape.inputs, requires_grad=True)
    weight = torch.ones(shape.outputs, shape.inputs, requires_grad=True)
    bias = torch.zeros(shape.outputs, requires_grad=True)
    gradient = torch.ones(TRAINED_ROWS, shape.outputs)

    def work() -> object:
        matmul.use(kernel)
        return torch.autograd.grad(matmul.linear(x, weight, bias), (x, weight, bias), gradient)

    return work


def _map(shape: Product, precision: Precision) -> Callable[[torch.Tensor], torch.Tensor]:
    return linear_map(
        torch.ones(shape.outputs, shape.inputs), torch.zeros(shape.outputs), precision
    )


def _rows(count: int, shape: Product, precision: Precision) -> torch.Tensor:
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    return torch.ones(count, shape.inputs, dtype=kind)


def _other_weights(found: Sequence[Product]) -> dict[Precision, torch.Tensor]:
    """Return as much memory as the weights of these products have in each precision."""
    numbers = sum(one.multiplications for one in found)
    sizes = {name: min(numbers * size, MOST_READ) // 4 for name, size in BYTES.items()}
    memory = torch.ones(max(sizes.values()))
    return {name: memory[:size] for name, size in sizes.items()}


def _least_seconds(
    works: dict[Candidate, list[Callable[[], object]]],
    before: Callable[[Candidate], object] = lambda _: None,
) -> dict[Candidate, list[float]]:
    """Return the least time of each work, all of which take turns.

    Args:
        works: what is timed.
        before: what is done before each and is not.
    """
    least = {name: [float("inf")] * len(several) for name, several in works.items()}
    end = time.perf_counter() + _SECONDS
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        for name, several in works.items():
            for place, work in enumerate(several):
                before(name)
                least[name][place] = min(least[name][place], _seconds(work))
    return least


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of all threads, which others on the machine change little."""
    started = time.process_time()
    work()
    return time.process_time() - started


def _rate(shapes: Sequence[Product], operations: int, seconds: Sequence[float]) -> float:
    """Return operations a second of a step, each multiplication counted as so many."""
    spent = sum(one.count * least for one, least in zip(shapes, seconds, strict=True))
    return operations * sum(one.multiplications for one in shapes) / spent
