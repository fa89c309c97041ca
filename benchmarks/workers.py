"""What do more workers give a training?

Makes the same updates with one worker and with several, each a process with a thread of its own,
which meet as those of ``convs2s train --workers N`` do. Prints one JSON object: the target tokens
per second of both, the efficiency (the speed-up by the number of workers; on a machine with fewer
free cores than workers it says what the others left), and the processor time of a token with
several by that with one, which is what summing the gradients costs.

    python benchmarks/workers.py --shape multi30k --workers 2
"""

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from convs2s.devices import keep_freed_memory
from convs2s.training.launch import worker_environment
from convs2s.training.workers import joined
from machine import RUNS
from training import WARM_UP, Training
from workloads import SHAPES, workload


@dataclass(frozen=True)
class Speed:
    """Some updates.

    Attributes:
        tokens: target tokens of all workers per second.
        processor: seconds of processor time of all workers for each token.
    """

    tokens: float
    processor: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Training with several workers.")
    parser.add_argument("--shape", choices=SHAPES, default="multi30k")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="fp32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=8, help="of a sample")
    given = parser.parse_args()
    alone, together = (
        measure(given.shape, given.precision, count, given.updates) for count in (1, given.workers)
    )
    figures = {
        "shape": given.shape,
        "precision": given.precision,
        "workers": given.workers,
        "tokens_per_second": [round(alone.tokens), round(together.tokens)],
        "efficiency": round(together.tokens / alone.tokens / given.workers, 3),
        "processor_time_of_a_token": round(together.processor / alone.processor, 3),
    }
    print(json.dumps(figures))


def measure(shape: str, precision: str, count: int, updates: int) -> Speed:
    """Return the median speed of ``RUNS`` samples with this many workers."""
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[list[tuple[float, int, float]]] = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(worker_environment(Path(folder), 1) | {"WORLD_SIZE": str(count)})
        processes = [
            context.Process(target=work, args=(rank, shape, precision, updates, folder, found))
            for rank in range(count)
        ]
        for process in processes:
            process.start()
        samples = [found.get() for _ in processes]
        for process in processes:
            process.join()
    speeds = []
    for parts in zip(*samples, strict=True):
        tokens = parts[0][1]
        seconds = max(seconds for seconds, _, _ in parts)
        speeds.append(Speed(tokens / seconds, sum(spent for _, _, spent in parts) / tokens))
    return Speed(
        statistics.median(one.tokens for one in speeds),
        statistics.median(one.processor for one in speeds),
    )


def work(
    rank: int,
    shape: str,
    precision: str,
    updates: int,
    folder: str,
    found: "multiprocessing.Queue[list[tuple[float, int, float]]]",
) -> None:
    """Be a worker: put seconds, target tokens of all and own processor seconds of each sample."""
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank)})
    keep_freed_memory()
    torch.set_num_threads(1)
    own = Path(folder) / str(rank)
    own.mkdir()
    with joined("cpu") as workers:
        training = Training(workload(shape, precision, own), workers=workers)
        training.sample(WARM_UP)
        samples = []
        for _ in range(RUNS):
            workers.wait()
            started, spent = time.perf_counter(), time.process_time()
            tokens, _ = training.make(updates)
            samples.append((time.perf_counter() - started, tokens, time.process_time() - spent))
    found.put(samples)


if __name__ == "__main__":
    main()
