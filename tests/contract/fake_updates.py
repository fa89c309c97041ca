"""What an update and a search ask of a GPU, counted on fake tensors.

A launch is an operation that writes numbers on the device.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.load import load
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.decoding.search import beam_search
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import Recording
from convs2s.training.loading import LossInputs
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.contract.fake_cuda import ROOT
from tests.support.apart import Apart

DEVICE = "cuda:0"
TYPES = 44_000  # As the BPE of WMT'14 English-French has
LENGTH = 25

NO_LAUNCH = re.compile(
    "alias|detach|empty|empty_like|empty_strided|lift_fresh|new_empty|_unsafe_view"
    "|new_empty_strided|device"
)
"""Operations, besides views, that write no numbers."""

TWO_LAUNCHES = {"constant_pad_nd", "slice_backward"}  # a fill and a copy

WAITING = {"_local_scalar_dense", "masked_select", "nonzero", "unique", "_unique2"}
"""Operations whose results have to reach the host."""


class FakeRecording(Recording):
    """A graph that is one launch; torch writes the seed and the offset of its masks before it."""

    def __init__(self) -> None:
        self.launched = torch.zeros(3, device=DEVICE)

    def record(self, work: Callable[[], Any]) -> Any:
        return work()

    def replay(self) -> None:
        for one in self.launched:
            one.zero_()


def tensors_in(values: object) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


class Counts(TorchDispatchMode):
    """Counts launches and copies between devices, and lists what waits for the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = 0
        self.uploads = 0
        self.waits: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        options = kwargs or {}
        result = func(*args, **options)
        name = func.overloadpacket.__name__
        tensors = tensors_in(result)
        is_written = any(one.is_cuda and one.numel() for one in tensors)
        self._note_copies(name, tensors_in((args, kwargs)), tensors, options)
        if is_written and not func.is_view and not NO_LAUNCH.fullmatch(name):
            self.launches += 2 if name in TWO_LAUNCHES else 1
        return result

    def _note_copies(
        self,
        name: str,
        read: list[Tensor],
        written: list[Tensor],
        options: dict[str, Any],
    ) -> None:
        """Note what moves numbers between the devices."""
        before = {value.device.type for value in read}
        after = {value.device.type for value in written}
        if name in WAITING or (before == {"cuda"} and after == {"cpu"}):
            self.waits.append(name)
        if name == "index" and any(value.dtype == torch.bool for value in read[1:]):
            self.waits.append("index by a mask")
        if name in ("_to_copy", "copy_") and "cpu" in before and after == {"cuda"}:
            self.uploads += 1
            if name == "_to_copy" and not options.get("non_blocking"):
                self.waits.append("upload")


@contextmanager
def pretended_gpu() -> Iterator[list[str]]:
    """Answer for a GPU of 80 GB in the block; yield the list of reads that wait for it."""
    reads: list[str] = []

    def numbers(tensor: Tensor) -> NDArray[Any]:
        # Any number will do that is in the beam and no special token.
        return np.full(tuple(tensor.shape), 3.0)

    def cpu(tensor: Tensor) -> object:
        reads.append("cpu")
        return SimpleNamespace(numpy=lambda: numbers(tensor))

    def tolist(tensor: Tensor) -> object:
        reads.append("tolist")
        return numbers(tensor).tolist()

    library = torch.library.Library("aten", "IMPL")
    # torch lacks it for tensors without numbers.
    library.impl("_fused_sgd_", lambda *_, **__: None, "Meta")
    with pytest.MonkeyPatch.context() as patch:
        for name, answer in {
            "is_available": True,
            "is_bf16_supported": True,
            "current_device": 0,
            "device_count": 1,
            "_get_device_properties": SimpleNamespace(total_memory=80 << 30),
            "_lazy_init": None,
            "_exchange_device": 0,
            "_maybe_exchange_device": 0,
            "set_rng_state": None,
            "get_rng_state": torch.empty(1),
        }.items():
            patch.setattr(torch.cuda, name, Mock(return_value=answer), raising=False)
        supported = [*_foreach_utils._foreach_supported_types, FakeTensor]
        patch.setattr(_foreach_utils, "_foreach_supported_types", supported)
        patch.setattr(torch.accelerator, "is_available", lambda: False)
        patch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
        patch.setattr(FakeTensor, "cpu", cpu, raising=False)
        patch.setattr(FakeTensor, "tolist", tolist)
        patch.setattr(Network, "to", lambda network, _: network)
        yield reads


def figures_of(
    model: str,
    tokens: int = 4000,
    limit: int | None = None,
    workers: int = 1,
    decodes: bool = False,
    **recipe: object,
) -> dict[str, Any]:
    """Return what an update of a model of config/models.yaml asks of a GPU.

    ``tokens`` are those of its batch, and ``limit`` is its recipe's micro-batch. If it ``decodes``,
    also return what a search waits for.
    """
    settings = load(ROOT).model(model)
    batch = settings.training.batch.model_copy(update={"micro_batch_tokens": limit})
    changes = {"precision": "bf16", "batch": batch, "compile": False} | recipe
    row = [3] * (LENGTH - 1) + [END]
    with tempfile.TemporaryDirectory() as folder, pretended_gpu() as reads:
        file = Path(folder) / "pairs.arrow"
        write_store(file, [(row, row)] * (tokens // LENGTH))
        store = TokenStore(file)
        with FakeTensorMode(allow_non_fake_inputs=True):
            with torch.device(DEVICE):
                network = build_network(settings.architecture, TYPES, TYPES)
            updater = Updater(
                network,
                settings.training.model_copy(update=changes),
                seed=1,
                device=DEVICE,
                workers=Apart(0, workers),
                recording=FakeRecording,
            )
            figures = update_figures(updater, store, reads)
            if decodes:
                figures["search_waits"] = search_waits(network, reads)
            return figures


def update_figures(
    updater: Updater, store: TokenStore, reads: list[str]
) -> dict[str, Any]:
    """Count the launches that are recorded, and those of an update that replays; list its waits."""
    loaded = updater.load(store, np.arange(len(store)))
    passes, backward = Counts(), updater._backward

    def counted(inputs: LossInputs, divisor: int | Tensor) -> Tensor:
        with passes:
            return backward(inputs, divisor)

    updater.start(loaded, Moment(1, 0, 0.1))  # makes the optimizer's state
    updater._backward = counted  # type: ignore[method-assign]
    updater.start(loaded, Moment(1, 1, 0.1))
    reads.clear()
    with Counts() as whole:
        updater.start(loaded, Moment(1, 2, 0.1))
    return {
        "micro_batches": len(loaded.micro_batches),
        "launches": passes.launches,
        "outside": whole.launches,
        "uploads": whole.uploads,
        "waits": passes.waits + whole.waits + reads,
    }


def search_waits(network: Network, reads: list[str]) -> list[str]:
    """Return what waits where two sentences are translated, which end at the most tokens."""
    source = np.array([[4, 5, 6, 7, 8, END]] * 2)
    ensemble = Ensemble([network.eval()], precision="bf16")
    length = MaximumLength(factor=1, offset=2)
    settings = DecodingSettings(beam=5, maximum_length=length)
    reads.clear()
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch, Counts() as counts:
        # Or a number goes there for real.
        patch.setattr(fake_tensor, "CONSTANT_NUMEL_LIMIT", 0)
        beam_search(ensemble, source, settings)
    return [*counts.waits, *reads]
