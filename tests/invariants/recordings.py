"""A recording on a CPU, as strict as a CUDA graph: the same operations in the same memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from convs2s.models.recorded_ensemble import Recording


def tensors(of: Any) -> list[Tensor]:
    return [one for one in tree_leaves(of) if isinstance(one, Tensor)]


WAITING = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"}
"""Operations whose result Python must know."""


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
