"""How fast is training, as a share of what the machine's matrix products reach?

Makes updates (forward, loss, backward, clipping, the optimizer's step) of one shape through the
project's own ``Updater``, and measures the rate of a bf16 linear map before and after each sample
of them, as a machine that others use is not equally fast all the time. Prints each sample and,
last, one JSON object: medians over five samples of the target tokens per second and of the share
of that rate. The model's arithmetic is counted as multiply-adds x 2, x 3 for forward and backward,
padding not counted.

    python benchmarks/training.py --shape multi30k --precision bf16 --threads 2
"""

import argparse
import json
import resource
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from convs2s.data.batches import plan_batches
from convs2s.models.build import build_network
from convs2s.training.memory import keep_freed_memory
from convs2s.training.update import Updater
from flops import flops
from machine import RUNS, gemm_rate, seconds_of
from workloads import SHAPES, Workload, workload

UPDATES = {"multi30k": 8, "wmt_en_fr": 1, "wmt_en_de": 1}
"""Updates of a sample."""

WARM_UP = 2
GIGA = 1e9


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

    def __init__(self, work: Workload, device: str = "cpu") -> None:
        """Build the network and its updater."""
        self.store, recipe = work.store, work.recipe
        torch.manual_seed(1)
        network = build_network(work.architecture, *work.types)
        self.parameters = sum(parameter.numel() for parameter in network.parameters())
        self.flops = flops(work.architecture, work.types[1])
        self.rate = recipe.learning_rate
        self.updater = Updater(network, recipe, seed=1, device=device)
        source, target = (self.store.lengths(side) for side in ("source", "target"))
        generator = np.random.default_rng([1, 1])
        self.plan = plan_batches(source, target, recipe.batch, generator)
        self.made = 0

    def update(self) -> tuple[int, float]:
        """Make the next update; return its target tokens and floating-point operations."""
        rows = self.plan[self.made % len(self.plan)]
        report = self.updater.update(self.store, rows, 1, self.made, self.rate)
        self.made += 1
        source, target = (
            self.store.lengths(side)[rows].astype(np.int64) for side in ("source", "target")
        )
        forward = self.flops.forward(source.sum(), target.sum(), (source * target).sum())
        return report.tokens, 3.0 * forward

    def sample(self, updates: int) -> tuple[float, float]:
        """Return the target tokens and the operations per second of some updates."""
        made: list[tuple[int, float]] = []
        seconds = seconds_of(lambda: made.extend(self.update() for _ in range(updates)))
        tokens, operations = map(sum, zip(*made, strict=True))
        return tokens / seconds, operations / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Training speed.")
    parser.add_argument("--shape", choices=SHAPES, default="multi30k")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        work = workload(arguments.shape, arguments.precision, Path(folder))
        training = Training(work)
        print(f"{arguments.shape}: {training.parameters} parameters, {work.text}", flush=True)
        samples = measure(training, UPDATES[arguments.shape])
    figures = {
        "shape": arguments.shape,
        "precision": arguments.precision,
        "threads": arguments.threads,
        "tokens_per_second": round(statistics.median(one.tokens for one in samples)),
        "gflops": round(statistics.median(one.rate for one in samples) / GIGA),
        "gemm_gflops": round(statistics.median(one.gemm for one in samples) / GIGA),
        "share_of_gemm": round(statistics.median(one.rate / one.gemm for one in samples), 3),
        "peak_gigabytes": round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGA, 2
        ),
    }
    print(json.dumps(figures))


def measure(training: Training, updates: int) -> list[Sample]:
    """Return ``RUNS`` samples, each between two measurements of the machine's matrix rate."""
    training.sample(WARM_UP)
    before, samples = gemm_rate(), []
    for _ in range(RUNS):
        tokens, rate = training.sample(updates)
        after = gemm_rate()
        sample = Sample(tokens, rate, (before + after) / 2)
        samples.append(sample)
        print(
            f"{sample.tokens:.0f} target tokens/s, {sample.rate / GIGA:.0f} of "
            f"{sample.gemm / GIGA:.0f} GFLOP/s: {sample.rate / sample.gemm:.1%}",
            flush=True,
        )
        before = after
    return samples


if __name__ == "__main__":
    main()
