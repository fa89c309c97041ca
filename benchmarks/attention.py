"""What does attention in more decoder layers cost? By section 5.5 of the paper 4% of the speed.

The networks of table 5's rows, which differ in their attention alone, take turns in making updates,
on synthetic sentences of Multi30k's lengths. Their output layers score as many types as vocabulary
selection left in the published run. Prints the processor time of each per target token, as a share
of the first one's with attention in all layers: the median over rounds, and their range.

    python benchmarks/attention.py
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.data.store import TokenStore, write_store
from convs2s.devices import keep_freed_memory
from training import Training
from workloads import ROOT, Workload, synthetic

TYPES = 4377  # per batch, in docs/results/tables.md
PAIRS, MEAN_LENGTH = 8_000, 15
WARM_UP = 1  # rounds that do not count


def trainings(settings: Settings, store: TokenStore) -> dict[str, Training]:
    """Return a training for each row of table 5, without vocabulary selection."""
    of_rows = {}
    for row in settings.paper["table5"].rows:
        model = settings.models[settings.scale.model_for(row.model or "") or ""]
        assert isinstance(model.architecture, ConvS2SArchitecture)
        network = model.architecture.model_copy(update={"vocabulary_selection": None})
        work = Workload(network, model.training, (TYPES, TYPES), store, "synthetic")
        of_rows[row.system] = Training(work)
    return of_rows


def measure(
    rows: Mapping[str, Training], rounds: int, updates: int
) -> dict[str, list[float]]:
    """Return the processor seconds per target token of each row, in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(WARM_UP + rounds):
        for name, training in rows.items():
            started = time.process_time()
            tokens, _ = training.make(updates)
            if number >= WARM_UP:
                seconds[name].append((time.process_time() - started) / tokens)
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description="Cost of attention in more decoder layers."
    )
    parser.add_argument(
        "--scale", default="multi30k_trained", help="of the networks [%(default)s]"
    )
    parser.add_argument("--rounds", type=int, default=9, help="default: %(default)s")
    parser.add_argument(
        "--updates", type=int, default=20, help="of a row's turn [%(default)s]"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    lengths = np.random.default_rng(0).poisson(MEAN_LENGTH, PAIRS).clip(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.arrow"
        write_store(path, synthetic(lengths.tolist(), (TYPES, TYPES)))
        rows = trainings(load(ROOT, {"scale": arguments.scale}), TokenStore(path))
        seconds = measure(rows, arguments.rounds, arguments.updates)
    first, medians = next(iter(seconds.values())), {}
    for name, times in seconds.items():
        shares = [time / usual for time, usual in zip(times, first, strict=True)]
        medians[name] = round(statistics.median(shares), 3)
        print(f"{name:16} {medians[name]:.3f} ({min(shares):.3f} to {max(shares):.3f})")
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
