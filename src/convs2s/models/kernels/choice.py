"""Which kernel and which precision are the fastest for a network on this machine.

What wins on one processor loses on another. The first training or decoding of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.
"""

from collections.abc import Sequence

from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.measurements import measured_here
from convs2s.models.kernels.packing import packs_fp32
from convs2s.models.kernels.probe import Product, decoding_rates, rates
from convs2s.models.kernels.quantized_linear import Precision

FAVOUR: dict[Kernel, float] = {"blas": 1.05}
"""By how much another kernel must be faster than torch's own library: less is noise."""

PRECISION_MARGIN = 1.2
"""By how much a precision must be faster than those that round less: near ones change places."""

MOST_DECODED_ROWS = 320
"""Hypotheses at a time that are measured; more of them change little."""


def fastest(found: Sequence[Product]) -> Kernel:
    """Return the fastest kernel for these products with this process's threads.

    What any process of this user has measured on such a processor is taken from the cache folder.

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    measured = measured_here(["training", *_shapes(found)], lambda: rates(found))
    return max(matmul.kernels(), key=lambda name: measured.get(name, 0.0) * FAVOUR.get(name, 1.0))


def fastest_precision(
    found: Sequence[Product], hypotheses: int, candidates: Sequence[Precision]
) -> Precision:
    """Return the fastest precision for a decoding's products with this process's threads.

    It is fp32 unless another one is faster by more than ``PRECISION_MARGIN``, and int8 only where
    it is by that much faster than bf16, too. What has been measured is kept as of ``fastest``.

    Args:
        found: the products of a step.
        hypotheses: how many there are at a time.
        candidates: those that the network has.

    Raises:
        UserError: as of ``fastest``.
    """
    rows = min(hypotheses, MOST_DECODED_ROWS)
    packs_fp32()  # is measured before: one measurement at a time
    work = [f"decoding {rows}", *_shapes(found)]
    measured = measured_here(work, lambda: decoding_rates(found, [rows])[rows])
    best: Precision = "fp32"
    for name in ("bf16", "int8"):  # each rounds more than the one before
        if name in candidates and measured.get(name, 0.0) > PRECISION_MARGIN * measured[best]:
            best = name
    return best


def _shapes(found: Sequence[Product]) -> list[tuple[int, int, int]]:
    return sorted((one.outputs, one.inputs, one.count) for one in found)
