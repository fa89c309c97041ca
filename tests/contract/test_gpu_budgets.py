"""What an update asks of a device, counted on one that computes nothing: budgets hold.

A launch is an operation that writes numbers there.
"""

import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.config.load import load
from convs2s.data.store import TokenStore, write_store
from convs2s.models.build import build_network
from convs2s.models.kernels.logits import summed_cross_entropy
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater

TYPES = 44_000  # As the BPE of WMT'14 English-French has
LENGTH = 25
TOKENS = 16_000


class Counts(TorchDispatchMode):
    """Counts launches, and the bytes of what lives at a time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = 0
        self.live = 0
        self.peak = 0
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        before = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        self.seen.update(tensor.untyped_storage() for tensor in before)
        result = func(*args, **(kwargs or {}))
        made = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        made = [tensor for tensor in made if tensor.is_meta]
        self.launches += bool(made) and not func.is_view
        for tensor in made:
            storage = tensor.untyped_storage()
            if storage not in self.seen:
                self.seen.add(storage)
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
                weakref.finalize(storage, self.free, storage.nbytes())
        return result

    def free(self, size: int) -> None:
        self.live -= size


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device without numbers has no autocast."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)


def test_an_update_of_16_000_tokens_fits_a_gpu_of_today(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(root).model("wmt14_en_fr")
    batch = settings.training.batch.model_copy(update={"micro_batch_tokens": None})
    changes = {"precision": "fp32", "batch": batch, "compile": False}
    recipe = settings.training.model_copy(update=changes)
    rows = [[3] * (LENGTH - 1) + [1]] * (TOKENS // LENGTH)
    write_store(tmp_path / "pairs.arrow", zip(rows, rows, strict=True))
    store = TokenStore(tmp_path / "pairs.arrow")
    with torch.device("meta"):
        network = build_network(settings.architecture, TYPES, TYPES)
    updater = Updater(network, recipe, seed=1, device="meta")
    monkeypatch.setattr(updater.optimizer, "step", lambda: None)
    loaded = updater.load(store, np.arange(len(store)))
    with Counts() as counts:
        updater.start(loaded, Moment(1, 0, 0.1))
    assert counts.launches <= 1800
    assert counts.peak < 14e9
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_the_loss_of_16_000_tokens_takes_less_than_a_gigabyte() -> None:
    weight = torch.empty(TYPES, 512, device="meta", requires_grad=True)
    features = torch.empty(TOKENS, 512, device="meta", requires_grad=True)
    bias = torch.empty(TYPES, device="meta", requires_grad=True)
    target = torch.ones(TOKENS, dtype=torch.int64, device="meta")
    with Counts() as counts:
        summed_cross_entropy(features, weight, bias, target, 0.1)
    assert counts.peak < 1e9
