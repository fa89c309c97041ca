"""How often a program waits for the device that its tensors are on."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

READS = ("cpu", "tolist", "item", "__bool__", "__int__", "__float__", "__index__")
"""Methods that hand a tensor's content to Python."""

WAITING = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"}
"""What these run, and whatever else has a result whose size depends on a tensor's content."""


@contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """Count the ways in which the block waits for a device."""
    waits: Counter[str] = Counter()

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = function.name().split(".")[0]
            if name in WAITING:
                waits[name] += 1
            return function(*args, **(kwargs or {}))

    def counted(name: str, method: Any) -> Any:
        def counting(*arguments: Any, **options: Any) -> Any:
            waits[name] += 1
            return method(*arguments, **options)

        return counting

    with pytest.MonkeyPatch.context() as patch:
        for name in READS:
            patch.setattr(Tensor, name, counted(name, getattr(Tensor, name)))
        with Operations():
            yield waits
