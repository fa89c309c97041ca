"""What the machine itself can do, as the measure of everything else, and how medians are taken."""

import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional

RUNS = 5
"""Measurements of which the median counts."""

GEMM_ROWS, GEMM_OUTPUTS, GEMM_INPUTS = 4000, 768, 512
"""The linear map by which machines are compared: (4000, 512) to (4000, 768)."""

WARM_UP_SECONDS = 0.3
SAMPLE_SECONDS = 0.2


def median_seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the median wall time of ``runs`` calls."""
    return statistics.median(seconds_of(work) for _ in range(runs))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def gemm_rate(precision: torch.dtype = torch.bfloat16) -> float:
    """Return the FLOP/s of a linear map at this precision: the median of ``RUNS`` samples.

    It runs with the threads that torch is set to; multiply-adds count twice. Measure it in the
    same run as what is compared with it.
    """
    x = torch.randn(GEMM_ROWS, GEMM_INPUTS, dtype=precision)
    weight = torch.randn(GEMM_OUTPUTS, GEMM_INPUTS, dtype=precision)
    bias = torch.randn(GEMM_OUTPUTS, dtype=precision)

    def linear(times: int) -> None:
        for _ in range(times):
            functional.linear(x, weight, bias)

    started, calls = time.perf_counter(), 0
    while time.perf_counter() - started < WARM_UP_SECONDS:
        linear(1)
        calls += 1
    calls = max(1, int(calls * SAMPLE_SECONDS / WARM_UP_SECONDS))
    with torch.inference_mode():
        seconds = median_seconds(lambda: linear(calls)) / calls
    return 2.0 * GEMM_ROWS * GEMM_OUTPUTS * GEMM_INPUTS / seconds
