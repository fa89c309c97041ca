"""Which kernel and which precision are the fastest for a network on this machine.

What wins on one processor loses on another. The first training or decoding of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.

The shapes that most of the arithmetic is in stand for all, their large sides cut: how fast a kernel
is depends on the rows much more than on these.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from convs2s.config.decoding import DecodingSettings
from convs2s.devices import has_bf16
from convs2s.errors import UserError
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.measurements import least_seconds, measured_here, one_thread
from convs2s.models.kernels.quantized_linear import Precision, linear_map, packs_fp32, runs_int8
from convs2s.models.layers import PlainOutput, WeightNormalized
from convs2s.models.network import Network

FAVOR: dict[Kernel, float] = {"blas": 1.05}
"""By how much another kernel must be faster than torch's own library: less is noise."""

PRECISION_MARGIN = 1.2
"""By how much a precision must be faster than those that round less: near ones change places."""

HEAVIEST = 2  # Shapes that are measured

TRAINED_ROWS = 1024
"""Rows of a product in training: with fewer, one kernel's start weighs more than another's."""

MOST_DECODED_ROWS = 320  # Hypotheses at a time that are measured; more of them change little

MOST_INPUTS, MOST_OUTPUTS, MOST_DECODED_OUTPUTS = 1024, 512, 2048
"""Sides of a weight that is measured: in training, and the outputs in decoding."""

MOST_READ = 1 << 27
"""Bytes of a network's other weights, at most, that are read between two uses of one."""

BYTES: Mapping[Precision, int] = {"fp32": 4, "bf16": 2, "int8": 1}  # Of a weight in each precision


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

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    rates = measured_here(["training", *_shapes(products)], lambda: training_rates(products))
    return max(matmul.kernels(), key=lambda name: rates.get(name, 0.0) * FAVOR.get(name, 1.0))


def chosen_precision(
    settings: DecodingSettings, networks: Sequence[Network], device: str
) -> Precision:
    """Return the precision that a decoding states, or the fastest one where it states ``auto``.

    On a CPU it is measured for the hypotheses of a full batch and the first of an ensemble's
    networks. On a GPU it is bf16 where that has it.
    """
    if settings.precision != "auto":
        return settings.precision
    precision: Precision = "fp32"
    if device != "cpu":
        precision = "bf16" if has_bf16() else "fp32"
    else:
        has_int8 = all(network.has_int8 for network in networks)
        candidates = [name for name in precisions() if name != "int8" or has_int8]
        hypotheses = settings.hypotheses
        try:
            with one_thread():  # as a batch is searched
                precision = fastest_precision(products_of(networks[0]), hypotheses, candidates)
        except UserError as error:
            print(f"{error}; precision: auto is not measured", file=sys.stderr)
    print(f"precision: auto is {precision} here", file=sys.stderr)
    return precision


def fastest_precision(
    products: Sequence[Product], hypotheses: int, candidates: Sequence[Precision]
) -> Precision:
    """Return the fastest precision of the candidates for a decoding's step with so many hypotheses.

    It is fp32 unless another one is faster by more than ``PRECISION_MARGIN``, and int8 only where
    it is by that much faster than bf16, too.

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    rows = min(hypotheses, MOST_DECODED_ROWS)
    packs_fp32()  # is measured before: one measurement at a time
    work = [f"decoding {rows}", *_shapes(products)]
    rates = measured_here(work, lambda: decoding_rates(products, [rows])[rows])
    best: Precision = "fp32"
    for name in ("bf16", "int8"):  # each rounds more than the one before
        if name in candidates and rates.get(name, 0.0) > PRECISION_MARGIN * rates[best]:
            best = name
    return best


def precisions() -> list[Precision]:
    """Return the precisions of decoding that this machine's CPU has."""
    return ["fp32", "bf16", "int8"] if runs_int8() else ["fp32", "bf16"]


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
    return {kernel: _rate(shapes, 6 * TRAINED_ROWS, least) for kernel, least in seconds.items()}


def decoding_rates(
    products: Sequence[Product], rows: Iterable[int]
) -> dict[int, dict[Precision, float]]:
    """Return operations a second of each precision of this machine, for numbers of hypotheses."""
    shapes = heaviest(products, MOST_INPUTS, MOST_DECODED_OUTPUTS)
    maps = {
        name: [
            linear_map(torch.ones(shape.outputs, shape.inputs), torch.zeros(shape.outputs), name)
            for shape in shapes
        ]
        for name in precisions()
    }
    works: dict[tuple[int, Precision], list[Callable[[], object]]] = {}
    for count in rows:
        for name in maps:
            dtype = torch.bfloat16 if name == "bf16" else torch.float32
            inputs = [torch.ones(count, shape.inputs, dtype=dtype) for shape in shapes]
            works[count, name] = [
                partial(linear, x) for linear, x in zip(maps[name], inputs, strict=True)
            ]
    # Before a weight comes in turn again all others of the network have been read: with few rows
    # that is what takes the time, and the less the fewer bytes a weight has.
    weights = sum(product.multiplications for product in products)
    sizes = {name: min(weights * size, MOST_READ) // 4 for name, size in BYTES.items()}
    memory = torch.ones(max(sizes.values()))
    with torch.inference_mode():
        seconds = least_seconds(works, lambda case: memory[: sizes[case[1]]].sum())
    rates: dict[int, dict[Precision, float]] = {count: {} for count, _ in works}
    for (count, name), least in seconds.items():
        rates[count][name] = _rate(shapes, 2 * count, least)
    return rates


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


def _shapes(products: Sequence[Product]) -> list[tuple[int, int, int]]:
    return sorted((product.outputs, product.inputs, product.count) for product in products)


def _rate(shapes: Sequence[Product], operations: int, seconds: Sequence[float]) -> float:
    """Return operations a second of a step, each multiplication counted as so many."""
    spent = sum(shape.count * least for shape, least in zip(shapes, seconds, strict=True))
    return operations * sum(shape.multiplications for shape in shapes) / spent
