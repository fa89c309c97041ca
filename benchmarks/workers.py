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

from convs2s.devices import keep_freed_memory, pick_device, worker_device
from convs2s.training.launch import worker_environment
from convs2s.training.workers import Workers, joined
from machine import RUNS
from training import WARM_UP, Training
from workloads import SHAPES, WMT_LENGTH, WMT_PAIRS, workload


@dataclass(frozen=True)
class Speed:
    """Some updates.

    Attributes:
        tokens: target tokens of all workers per second.
        processor: seconds of processor time of all workers for each token.
        memory: the most bytes that a worker has had on its GPU; 0 without one.
    """

    tokens: float
    processor: float
    memory: int


@dataclass(frozen=True)
class Updates:
    """What the workers make.

    Attributes:
        shape: of ``SHAPES``, or tiny.
        precision: of the training.
        count: updates of a sample.
        device: cpu, or cuda for a GPU each.
        pairs: sentence pairs of a synthetic batch, over all workers.
        length: their tokens on each side.
    """

    shape: str
    precision: str
    count: int
    device: str = "cpu"
    pairs: int = WMT_PAIRS
    length: int = WMT_LENGTH


@dataclass(frozen=True)
class Sample:
    """A worker's part of some updates.

    Attributes:
        seconds: that they took.
        tokens: target tokens of all workers.
        processor: seconds of its processor time.
        memory: as of ``Speed``.
    """

    seconds: float
    tokens: int
    processor: float
    memory: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Training with several workers.")
    parser.add_argument("--shape", choices=SHAPES, default="multi30k")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="fp32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=8, help="of a sample")
    given = parser.parse_args()
    alone, together = (
        measure(Updates(given.shape, given.precision, given.updates), count)
        for count in (1, given.workers)
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


def measure(updates: Updates, count: int) -> Speed:
    """Return the median speed of ``RUNS`` samples with this many workers.

    Raises:
        ChildProcessError: a worker has failed.
    """
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[list[Sample] | None] = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            worker_environment(Path(folder))
            | {"WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
        )
        processes = [
            context.Process(target=work, args=(rank, updates, folder, found))
            for rank in range(count)
        ]
        for process in processes:
            process.start()
        samples = [found.get() for _ in processes]
        for process in processes:
            process.join()
    if any(own is None for own in samples):
        raise ChildProcessError("a worker has failed, as said above")
    speeds = []
    for parts in zip(*(own for own in samples if own is not None), strict=True):
        tokens = parts[0].tokens
        seconds = max(part.seconds for part in parts)
        memory = max(part.memory for part in parts)
        speeds.append(
            Speed(
                tokens / seconds, sum(part.processor for part in parts) / tokens, memory
            )
        )
    return Speed(
        statistics.median(one.tokens for one in speeds),
        statistics.median(one.processor for one in speeds),
        max(one.memory for one in speeds),
    )


def work(
    rank: int,
    updates: Updates,
    folder: str,
    found: "multiprocessing.Queue[list[Sample] | None]",
) -> None:
    """Be a worker: put its samples, or None where it fails."""
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank)})
    keep_freed_memory()
    torch.set_num_threads(1)
    own = Path(folder) / str(rank)
    own.mkdir()
    samples: list[Sample] | None = None
    try:
        device = worker_device(pick_device(updates.device))
        with joined(device) as workers:
            samples = samples_of(updates, own, device, workers)
    finally:
        found.put(samples)


def samples_of(
    updates: Updates, folder: Path, device: str, workers: Workers
) -> list[Sample]:
    """Return a worker's samples."""
    size = updates.pairs, updates.length
    work = workload(updates.shape, updates.precision, folder, *size)
    training = Training(work, device, workers)
    training.sample(WARM_UP)
    samples = []
    for _ in range(RUNS):
        workers.wait()
        started, spent = time.perf_counter(), time.process_time()
        tokens, _ = training.make(updates.count)
        seconds, processor = time.perf_counter() - started, time.process_time() - spent
        memory = 0 if device == "cpu" else torch.cuda.max_memory_allocated()
        samples.append(Sample(seconds, tokens, processor, memory))
    return samples


if __name__ == "__main__":
    main()
