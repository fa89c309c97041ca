"""How fast is training, as a share of what the machine's matrix products reach?

Makes updates (forward, loss, backward, clipping, the optimizer's step) of one shape through the
project's own ``Updater``, and measures the rate of a linear map of the same precision before and
after each sample of them, as a machine that others use is not equally fast all the time. Prints
each sample and, last, one JSON object for each kernel: medians over five samples of the target
tokens per second and of the share of that rate. The model's arithmetic is counted as multiply-adds
x 2, x 3 for forward and backward, padding not counted.

In fp32 the kernels take turns, sample by sample; ``chosen`` is the one that a training takes here.

    python benchmarks/training.py --shape multi30k --precision bf16 --threads 2
"""

import argparse
import json
import resource
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch

from convs2s.data.batches import plan_batches
from convs2s.devices import keep_freed_memory
from convs2s.models.build import build_network
from convs2s.models.kernels import matmul
from convs2s.models.kernels.choice import fastest_kernel, products_of
from convs2s.models.kernels.matmul import Kernel
from convs2s.training.loading import ahead
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from convs2s.training.workers import ALONE, Workers
from flops import flops
from machine import RUNS, gemm_rate, seconds_of
from workloads import SHAPES, Workload, workload

UPDATES = {"multi30k": 8, "wmt_en_fr": 1, "wmt_en_de": 1}
"""Updates of a sample."""

WARM_UP = 2
GIGA = 1e9
PRECISIONS = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Sample:
    """Some updates.

    Attributes:
        tokens: target tokens per second.
        rate: floating-point operations per second.
        gemm: the machine's, around the same time.
    """

    tokens: float
    rate: float
    gemm: float


class Training:
    """Updates of a workload, one after the other in the order of its first epoch."""

    def __init__(
        self, work: Workload, device: str = "cpu", workers: Workers = ALONE
    ) -> None:
        """Build the network and its updater."""
        self.store, recipe = work.store, work.recipe
        self.architecture = work.architecture
        torch.manual_seed(1)
        network = build_network(work.architecture, *work.types)
        self.products = products_of(network)
        self.parameters = sum(parameter.numel() for parameter in network.parameters())
        self.flops = flops(work.architecture, work.types[1])
        self.rate = recipe.learning_rate
        self.updater = Updater(network, recipe, seed=1, device=device, workers=workers)
        self.lengths = [self.store.lengths(side) for side in ("source", "target")]
        generator = np.random.default_rng([1, 1])
        self.plan = plan_batches(
            self.lengths[0], self.lengths[1], recipe.batch, generator
        )
        self.made = 0

    def make(self, updates: int) -> tuple[int, float]:
        """Make the next updates as a training does; return their target tokens and operations.

        They are read ahead, and none of them is waited for but the last one.
        """
        numbers = range(self.made, self.made + updates)
        batches = [self.plan[number % len(self.plan)] for number in numbers]
        load = partial(self.updater.load, self.store)
        with closing(ahead(load, batches)) as loaded:
            started = [
                self.updater.start(one, Moment(1, number, self.rate))
                for one, number in zip(loaded, numbers, strict=True)
            ]
            reports = self.updater.read(started)
        self.made += updates
        rows = np.concatenate(batches)
        source, target = (length[rows].astype(np.int64) for length in self.lengths)
        forward = self.flops.forward(
            source.sum(), target.sum(), (source * target).sum()
        )
        return sum(report.tokens for report in reports), 3.0 * forward

    def sample(self, updates: int) -> tuple[float, float]:
        """Return the target tokens and the operations per second of some updates."""
        made: list[tuple[int, float]] = []
        seconds = seconds_of(lambda: made.append(self.make(updates)))
        tokens, operations = made[0]
        return tokens / seconds, operations / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Training speed.")
    parser.add_argument("--shape", choices=SHAPES, default="multi30k")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        work = workload(arguments.shape, arguments.precision, Path(folder))
        training = Training(work)
        print(
            f"{arguments.shape}: {training.parameters} parameters, {work.text}",
            flush=True,
        )
        kernels = (
            matmul.kernels() if arguments.precision == "fp32" else [matmul.in_use()]
        )
        chosen = fastest_kernel(training.products) if len(kernels) > 1 else kernels[0]
        found = measure(
            training, UPDATES[arguments.shape], kernels, PRECISIONS[arguments.precision]
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGA
    for kernel, samples in found.items():
        figures = {
            "shape": arguments.shape,
            "precision": arguments.precision,
            "products": kernel,
            "chosen": kernel == chosen,
            "threads": arguments.threads,
            "tokens_per_second": round(
                statistics.median(one.tokens for one in samples)
            ),
            "gflops": round(statistics.median(one.rate for one in samples) / GIGA),
            "gemm_gflops": round(statistics.median(one.gemm for one in samples) / GIGA),
            "share_of_gemm": round(
                statistics.median(one.rate / one.gemm for one in samples), 3
            ),
            "peak_gigabytes": round(peak, 2),
        }
        print(json.dumps(figures))


def measure(
    training: Training, updates: int, kernels: Sequence[Kernel], precision: torch.dtype
) -> dict[Kernel, list[Sample]]:
    """Return ``RUNS`` samples of each kernel, between measurements of the machine's matrix rate."""
    found: dict[Kernel, list[Sample]] = {kernel: [] for kernel in kernels}
    for kernel in kernels:
        matmul.use(kernel)
        training.sample(WARM_UP)
    before = gemm_rate(precision)
    for _, kernel in product(range(RUNS), kernels):
        matmul.use(kernel)
        tokens, rate = training.sample(updates)
        after = gemm_rate(precision)
        sample = Sample(tokens, rate, (before + after) / 2)
        found[kernel].append(sample)
        print(
            f"{kernel}: {sample.tokens:.0f} target tokens/s, {sample.rate / GIGA:.0f} of "
            f"{sample.gemm / GIGA:.0f} GFLOP/s: {sample.rate / sample.gemm:.1%}",
            flush=True,
        )
        before = after
    return found


if __name__ == "__main__":
    main()
