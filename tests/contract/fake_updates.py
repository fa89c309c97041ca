"""What an update, a validation and a search ask of a GPU, counted on fake tensors.

A launch is an operation that writes numbers on the device. Of a compiled network it is a kernel of
the compiler's own schedule (pointwise operations fused, equal ones side by side as one), which
needs the properties of a GPU, here an H100's, and none of its own.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
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

from convs2s.config.architecture import parse_architecture
from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.load import load
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.decoding.search import beam_search
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.kernels.logits import summed_cross_entropy
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import Recording
from convs2s.training.loading import LossInputs
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from tests.contract.compiled_kernels import count_kernels
from tests.contract.fake_cuda import ROOT
from tests.support.together import Apart

DEVICE = "cuda:0"
TYPES = 44_000  # As the BPE of WMT'14 English-French has
LENGTH = 25

NO_LAUNCH = {
    "alias",
    "detach",
    "empty",
    "empty_like",
    "empty_strided",
    "lift_fresh",
    "new_empty",
    "_unsafe_view",
    "new_empty_strided",
    "device",
}
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


def tensors_of(values: object) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


class Counts(TorchDispatchMode):
    """Counts launches and copies between devices, and lists what waits for the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = self.uploads = self.live = self.peak = 0
        self.waits: list[str] = []
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        options = kwargs or {}
        result = func(*args, **options)
        name = func.overloadpacket.__name__
        read, made = tensors_of((args, options)), tensors_of(result)
        before = {tensor.device.type for tensor in read}
        after = {tensor.device.type for tensor in made}
        if name in WAITING or (before == {"cuda"} and after == {"cpu"}):
            self.waits.append(name)
        if name == "index" and any(tensor.dtype == torch.bool for tensor in read[1:]):
            self.waits.append("index by a mask")
        if name in ("_to_copy", "copy_") and "cpu" in before and after == {"cuda"}:
            self.uploads += 1
            if name == "_to_copy" and not options.get("non_blocking"):
                self.waits.append("upload")
        written = [x for x in made if x.device.type == "cuda" and x.numel()]
        if written and not func.is_view and name not in NO_LAUNCH:
            self.launches += 2 if name in TWO_LAUNCHES else 1
        for tensor in written:
            self._note_memory(tensor)
        return result

    def _note_memory(self, tensor: Tensor) -> None:
        """Count the bytes of what the tensor is in for as long as that lives."""
        storage = tensor.untyped_storage()
        if storage not in self.seen:
            self.seen.add(storage)
            self._add(storage.nbytes())
            weakref.finalize(storage, self._add, -storage.nbytes())

    def _add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)


def threes(tensor: Tensor) -> NDArray[Any]:
    """Any number will do that is in the beam and no special token."""
    return np.full(tensor.shape, 3.0)


@contextmanager
def pretended_gpu() -> Iterator[list[str]]:
    """Answer for an H100 in the block; yield the list of reads that wait for it."""
    properties = SimpleNamespace(
        major=9,
        minor=0,
        multi_processor_count=132,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        warp_size=32,
        total_memory=80 << 30,
        shared_memory_per_block_optin=232448,
        name="H100",
        gcnArchName="",
    )
    reads: list[str] = []

    def cpu(tensor: Tensor) -> SimpleNamespace:
        reads.append("cpu")
        return SimpleNamespace(numpy=partial(threes, tensor))

    def tolist(tensor: Tensor) -> object:
        reads.append("tolist")
        return threes(tensor).tolist()

    library = torch.library.Library("aten", "IMPL")
    # torch lacks it for tensors without numbers.
    library.impl("_fused_sgd_", lambda *_, **__: None, "Meta")
    with pytest.MonkeyPatch.context() as patch:
        answers = {
            "is_available": True,
            "is_bf16_supported": True,
            "current_device": 0,
            "device_count": 1,
            "get_device_capability": (9, 0),
            "_get_device_properties": properties,
            "_lazy_init": None,
            "_exchange_device": 0,
            "_maybe_exchange_device": 0,
            "set_rng_state": None,
        }
        for name, answer in answers.items():
            patch.setattr(torch.cuda, name, Mock(return_value=answer), raising=False)
        patch.setattr(torch.cuda, "get_rng_state", lambda *_: torch.empty(1))
        supported = [*_foreach_utils._foreach_supported_types, FakeTensor]
        patch.setattr(_foreach_utils, "_foreach_supported_types", supported)
        patch.setattr(torch.accelerator, "is_available", lambda: False)
        patch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
        patch.setattr(FakeTensor, "cpu", cpu)
        patch.setattr(FakeTensor, "tolist", tolist)
        patch.setattr(Network, "to", lambda network, _: network)
        yield reads


def figures_of(
    model: str,
    tokens: int = 4000,
    blocks: Sequence[Mapping[str, int]] = (),
    limit: int | None = None,
    workers: int = 1,
    **recipe: object,
) -> dict[str, Any]:
    """Return what an update of a model of config/models.yaml asks of a GPU, and what follows it.

    ``tokens`` are those of its batch, ``limit`` is its recipe's micro-batch, and ``blocks`` are the
    encoder's and the decoder's, where not the model's own.
    """
    settings = load(ROOT).model(model)
    architecture = settings.architecture.model_dump()
    if blocks:
        architecture |= {"encoder": blocks, "decoder": blocks}
    rows = [[3] * (LENGTH - 1) + [1]] * (tokens // LENGTH)
    batch = settings.training.batch.model_copy(update={"micro_batch_tokens": limit})
    changes = {"precision": "bf16", "batch": batch, "compile": False} | recipe
    with (
        tempfile.TemporaryDirectory() as folder,
        pretended_gpu() as reads,
        pytest.MonkeyPatch.context() as patch,
    ):
        kernels = count_kernels(patch) if changes["compile"] else []
        write_store(Path(folder) / "pairs.arrow", zip(rows, rows, strict=True))
        store = TokenStore(Path(folder) / "pairs.arrow")
        with FakeTensorMode(allow_non_fake_inputs=True):
            with torch.device(DEVICE):
                network = build_network(parse_architecture(architecture), TYPES, TYPES)
            updater = Updater(
                network,
                settings.training.model_copy(update=changes),
                seed=1,
                device=DEVICE,
                workers=Apart(0, workers),
                recording=FakeRecording,
            )
            if changes["compile"]:
                return compiled_figures(updater, store, kernels)
            return {
                **update_figures(updater, store, reads),
                "parameters": kinds(network.parameters()),
                "gradients": kinds(one.grad for one in network.parameters()),
                "states": kinds(tensors_of(list(updater.optimizer.state.values()))),
                "validation_waits": waits_of(lambda: updater.validate(store), reads),
                "search_waits": waits_of(lambda: search(network), reads),
                "logits_bytes": logits_bytes(
                    network, tokens, changes["precision"] == "bf16"
                ),
            }


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
        started = updater.start(loaded, Moment(1, 2, 0.1))
    waits = passes.waits + whole.waits + reads
    return {
        "micro_batches": len(loaded.micro_batches),
        "launches": passes.launches,
        "outside": whole.launches,
        "uploads": whole.uploads,
        "waits": waits,
        "loss": [str(started.loss.device), str(started.loss.dtype)],
        "peak_bytes": passes.peak,
    }


class Boundary(torch.autograd.Function):
    """Where what is compiled ends: what leaves it is here, and its gradients go no further."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the same numbers."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        """Drop the gradient."""


def compiled_figures(
    updater: Updater, store: TokenStore, kernels: list[int]
) -> dict[str, Any]:
    """Count the kernels of a micro-batch's graphs, and the launches of what is not compiled."""
    _, inputs = updater.load(store, np.arange(len(store))).micro_batches[0]
    updater.network.train()
    updater._backward(inputs, 1)
    forward, backward, block = kernels
    weight, total = updater.network.output.weight(), torch.zeros((), device=DEVICE)
    features = torch.zeros(len(inputs.target), weight.shape[1], device=DEVICE)
    entering = features.bfloat16(), weight.detach(), weight.new_zeros(TYPES)
    blocks: list[Tensor] = []

    def block_loss(logits: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
        blocks.append(logits)
        return total, torch.empty_like(logits)

    def output_layer_inputs(_: object) -> Any:
        return [Boundary.apply(x.requires_grad_()) for x in entering]  # type: ignore[no-untyped-call]

    updater._output_layer_inputs = output_layer_inputs  # type: ignore[assignment]
    updater._block_loss = block_loss  # type: ignore[assignment]
    with Counts() as rest:
        updater._backward(inputs, 1)
    launches = forward + backward + block * len(blocks) + rest.launches
    return {"kernels": kernels, "launches": launches}


def kinds(tensors: Iterable[Any]) -> list[str]:
    """Return the devices and precisions of tensors."""
    return sorted({f"{x.device} {x.dtype}" for x in tensors})


def waits_of(work: Callable[[], object], reads: list[str]) -> list[str]:
    """Return what of some work waits for the device."""
    reads.clear()
    counts = Counts()
    with counts:
        work()
    return counts.waits + reads


def search(network: Network) -> None:
    """Translate two sentences, which end at the most tokens."""
    source = np.array([[4, 5, 6, 7, 8, END]] * 2)
    ensemble = Ensemble([network.eval()], precision="bf16")
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        # Or a number goes there for real.
        patch.setattr(fake_tensor, "CONSTANT_NUMEL_LIMIT", 0)
        length = MaximumLength(factor=1, offset=2)
        beam_search(ensemble, source, DecodingSettings(beam=5, maximum_length=length))


def logits_bytes(network: Network, rows: int, rounds: bool) -> int:
    """Return the most bytes that the loss of so many tokens has at a time beyond its inputs."""
    weight = network.output.weight().detach().requires_grad_()
    features = torch.empty(rows, weight.shape[1], device=DEVICE, requires_grad=True)
    target = torch.ones(rows, dtype=torch.int64, device=DEVICE)
    counts = Counts()
    # These were there before.
    counts.seen.update(tensor.untyped_storage() for tensor in (features, weight))
    with counts, torch.autocast("cuda", torch.bfloat16, enabled=rounds):
        summed_cross_entropy(features, weight, network.output.bias, target, 0.1)
    return counts.peak
