"""What stands for a GPU on a CPU: recordings as strict as CUDA graphs, and counts of waits."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.models.recorded_ensemble import Recording

# ---- a recording: the same operations in the same memory ----


def tensors(of: Any) -> list[Tensor]:
    return [one for one in tree_leaves(of) if isinstance(one, Tensor)]


WAITING = {
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
}
"""Operations whose result Python must know, or whose size depends on a tensor's content."""


class Operations(TorchDispatchMode):
    """Runs operations and notes them, with what their inputs were before them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.before: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = function.name().split(".")[0]
        assert name not in WAITING, "nothing that is recorded can wait for a result"
        if function._schema.is_mutable:
            for one in tensors((args, kwargs)):
                whole = one.new_empty(0).set_(one.untyped_storage())
                self.before.setdefault(whole.data_ptr(), (whole, whole.clone()))
        result = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs or {}, result))
        return result


class CpuRecording(Recording):
    """Runs a step's operations again, and no line of Python between them."""

    def __init__(self) -> None:
        self.replays = 0

    def record(self, work: Callable[[], Any]) -> Any:
        with torch.random.fork_rng(devices=[]), Operations() as self._operations:
            found = work()
        for whole, before in self._operations.before.values():
            whole.copy_(before)  # it is noted, and not done
        for one in tensors(found):
            one.fill_(torch.nan)
        return found

    @torch.no_grad()
    def replay(self) -> None:
        self.replays += 1
        for function, args, kwargs, result in self._operations.calls:
            again = function(*args, **kwargs)
            for old, new in zip(tensors(result), tensors(again), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Recorder:
    """Makes recordings, and keeps them."""

    def __init__(self) -> None:
        self.made: list[CpuRecording] = []

    def __call__(self) -> CpuRecording:
        self.made.append(CpuRecording())
        return self.made[-1]


class Again(Recording):
    """Does the whole work again in place of a replay."""

    def __init__(self) -> None:
        self.loss = torch.zeros((), dtype=torch.float64)

    def record(self, work: Callable[[], Any]) -> Any:
        self.work = work
        return self.loss

    def replay(self) -> None:
        self.loss.copy_(self.work())


# ---- how often a program waits for the device that its tensors are on ----

READS = ("cpu", "tolist", "item", "__bool__", "__int__", "__float__", "__index__")
"""Methods that hand a tensor's content to Python."""


@contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """Count the ways in which the block waits for a device."""
    waits: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in READS:
            patch.setattr(Tensor, name, _counted(name, getattr(Tensor, name), waits))
        with profile(activities=[ProfilerActivity.CPU]) as trace:
            yield waits
    events = [event for event in trace.events() or [] if event.name in WAITING]
    waits.update(event.name for event in events if not _is_of_adams_steps(event))


def _is_of_adams_steps(event: Any) -> bool:
    """Return whether a CPU's Adam reads its own counters of steps, which no device computes."""
    while event is not None and event.name != "aten::_fused_adam_":
        event = event.cpu_parent
    return event is not None


def _counted(name: str, method: Any, waits: Counter[str]) -> Any:
    def counting(tensor: Tensor, *arguments: Any, **options: Any) -> Any:
        waits[name] += 1
        return method(tensor, *arguments, **options)

    return counting
