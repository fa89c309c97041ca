"""How fast does an LSTM train, beside torch.nn.LSTM itself on the same shapes in the same run?

Three things are timed on the same batches of Multi30k (fairseq's input where the folder that
CONVS2S_SHARED names has it, else pairs of about its lengths), in turn, as a machine that others use
is not equally fast all the time:

- ``update``: a whole update through the project's ``Updater``: embeddings, layers, softmax, loss,
  backward, clipping, the optimizer's step;
- ``network``: embeddings, dropout and layers alone, forward and backward;
- ``bare``: two stacks ``nn.LSTM(num_layers=...)`` over random inputs of the batch's padded shapes,
  the second one from the first one's states, forward and backward.

Prints each sample and, last, one JSON object: medians of the target tokens per second of each, and
of the shares ``bare`` / ``network`` and ``bare`` / ``update`` of the seconds: the speed of ours as
a share of the kernel's.

    python benchmarks/lstm.py --precision bf16 --threads 1
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.load import load
from convs2s.data.batches import Rows, collate, plan_batches
from convs2s.data.store import TokenStore
from convs2s.devices import keep_freed_memory
from convs2s.models.build import build_network
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from machine import RUNS, seconds_of
from workloads import ROOT, fairseq_folder, write_fairseq_pairs

WARM_UP = 2


class Contest:
    """One network, and bare stacks of its shape, on the same batches."""

    def __init__(
        self, store: TokenStore, types: tuple[int, int], model: str, kind: str
    ) -> None:
        """Build both.

        Args:
            store: the pairs.
            types: of each side.
            model: a name of config/models.yaml.
            kind: the precision.
        """
        settings = load(ROOT).model(model)
        shape = settings.architecture
        assert isinstance(shape, LstmArchitecture)
        recipe = settings.training.model_copy(update={"precision": kind})
        torch.manual_seed(1)
        self.store, self.kind = store, kind
        self.updater = Updater(
            build_network(shape, *types), recipe, seed=1, device="cpu"
        )
        self.stacks = [
            nn.LSTM(shape.embedding, shape.cells, shape.layers, batch_first=True)
            for _ in range(2)
        ]
        self.width = shape.embedding
        self.plan = plan_batches(
            store.lengths("source"),
            store.lengths("target"),
            recipe.batch,
            np.random.default_rng([1, 1]),
        )

    def update(self, rows: Rows) -> None:
        """Make one update."""
        loaded = self.updater.load(self.store, rows)
        moment = Moment(1, 0, self.updater.recipe.learning_rate)
        self.updater.read([self.updater.start(loaded, moment)])

    def network(self, rows: Rows) -> None:
        """Run embeddings and layers forward and backward."""
        batch = collate(self.store, rows)
        self.updater.network.train()
        arrays = (torch.from_numpy(array) for array in (batch.source, batch.previous))
        with self._precision():
            features = self.updater.network.features(*arrays)
        self._backward(features)

    def bare(self, rows: Rows) -> None:
        """Run the stacks forward and backward."""
        batch = collate(self.store, rows)
        inputs = [
            torch.randn(*side.shape, self.width)
            for side in (batch.source, batch.target)
        ]
        for one in inputs:
            one.requires_grad_()  # as the embeddings' output does
        with self._precision():
            _, states = self.stacks[0](inputs[0])
            features, _ = self.stacks[1](inputs[1], states)
        self._backward(features)

    def _precision(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.kind == "bf16")

    @staticmethod
    def _backward(features: Tensor) -> None:
        features.backward(torch.ones_like(features))


def _run(work: Callable[[Rows], None], batches: Sequence[Rows]) -> None:
    for rows in batches:
        work(rows)


def measure(contest: Contest, updates: int) -> dict[str, float]:
    """Return the medians over ``RUNS`` samples of this many batches each."""
    works: dict[str, Callable[[Rows], None]] = {
        "update": contest.update,
        "network": contest.network,
        "bare": contest.bare,
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for sample in range(-1, RUNS):
        start = max(0, sample) * updates
        chosen = contest.plan[start : start + (updates if sample >= 0 else WARM_UP)]
        tokens = sum(len(contest.store[int(row)][1]) for rows in chosen for row in rows)
        for name, work in works.items():
            seconds = seconds_of(partial(_run, work, chosen))
            if sample >= 0:  # the first one warms up
                found[name].append(tokens / seconds)
        if sample >= 0:
            rates = ", ".join(f"{name} {rate[-1]:,.0f}" for name, rate in found.items())
            print(f"{rates} target tokens/s", flush=True)
    return {
        **{
            f"{name}_tokens_per_second": round(statistics.median(found[name]))
            for name in works
        },
        **{
            f"{name}_of_bare": round(
                statistics.median(
                    a / b for a, b in zip(found[name], found["bare"], strict=True)
                ),
                3,
            )
            for name in ("network", "update")
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Training speed of an LSTM.")
    parser.add_argument(
        "--model", default="small_lstm", help="of config/models.yaml [%(default)s]"
    )
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument(
        "--updates", type=int, default=20, help="of a sample [%(default)s]"
    )
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.arrow"
        types, text = write_fairseq_pairs(path, fairseq_folder() / "bpe")
        contest = Contest(TokenStore(path), types, arguments.model, arguments.precision)
        print(
            f"{arguments.model}, {text}, {len(contest.plan)} updates an epoch",
            flush=True,
        )
        figures = measure(contest, arguments.updates)
    chosen = {
        name: getattr(arguments, name) for name in ("model", "precision", "threads")
    }
    print(json.dumps({**chosen, **figures}))


if __name__ == "__main__":
    main()
