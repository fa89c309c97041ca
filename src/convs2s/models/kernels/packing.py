"""Whether weights of fp32 are better laid out once by oneDNN, or left to torch's own library.

That is MKL on x86, whose fast kernels are for one maker's processors: on another one oneDNN's are
twice to four times as fast.
"""

import sys
import time
from collections.abc import Callable
from functools import cache

import torch

from convs2s.errors import UserError
from convs2s.models.kernels.measurements import measured_here, one_thread

ROWS, INPUTS, OUTPUTS = 64, 512, 768
"""Of the product that is measured once for all networks: a batch of a middling layer."""

TURNS = 20
"""Of each; the least time counts."""

MARGIN = 1.5
"""By how much oneDNN must be faster: both round differently, and noise must not change the bytes
of a translation."""

ROWS_HINT = 128
"""Rows that the layout of packed weights is chosen for; it serves any number."""


@cache
def packs_fp32() -> bool:
    """Return whether oneDNN is that much faster, as this user has first measured it here."""
    try:
        with one_thread():
            rates = measured_here(["maps in fp32", ROWS, INPUTS, OUTPUTS], _rates)
    except UserError as error:
        print(f"{error}; maps in fp32 are computed by blas, unmeasured", file=sys.stderr)
        return False
    return rates["onednn"] > MARGIN * rates["blas"]


def _rates() -> dict[str, float]:
    x, weight, bias = torch.ones(ROWS, INPUTS), torch.ones(OUTPUTS, INPUTS), torch.ones(OUTPUTS)
    transposed = weight.t().contiguous()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS_HINT)
    works: dict[str, Callable[[], object]] = {
        "blas": lambda: torch.addmm(bias, x, transposed),
        "onednn": lambda: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], ""),
    }
    least = dict.fromkeys(works, float("inf"))
    with torch.inference_mode():
        for _ in range(TURNS):
            for name, work in works.items():
                started = time.process_time()
                work()
                least[name] = min(least[name], time.process_time() - started)
    return {name: 2 * ROWS * INPUTS * OUTPUTS / seconds for name, seconds in least.items()}
