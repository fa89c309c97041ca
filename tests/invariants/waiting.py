"""How often a program waits for the device that its tensors are on."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

READS = ("cpu", "tolist", "item", "__bool__", "__int__", "__float__", "__index__")
"""Methods that hand a tensor's content to Python."""

WAITING_OPERATIONS = {"aten::item", "aten::_local_scalar_dense", "aten::nonzero"}
"""What the profiler sees of these, and of sizes that depend on a tensor's content."""


@contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """Count the ways in which the block waits for a device."""
    waits: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in READS:
            patch.setattr(Tensor, name, _counted(name, getattr(Tensor, name), waits))
        with profile(activities=[ProfilerActivity.CPU]) as trace:
            yield waits
    events = [
        event for event in trace.events() or [] if event.name in WAITING_OPERATIONS
    ]
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
