"""The device of a search. Where there can be no GPU, torch is not imported to ask for one."""

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager

DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
GRANTS = {"CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "NVIDIA_VISIBLE_DEVICES"}
"""Device files and environment variables of which a machine with a usable GPU has at least one."""


def is_surely_cpu(name: str) -> bool:
    """Return whether a device (``auto``, ``cpu`` or ``cuda``) is known to be a CPU without torch.

    If torch is not installed, ``auto`` is a CPU.
    """
    if name != "auto":
        return name == "cpu"
    may_have_gpu = any(map(os.path.exists, DRIVERS)) or GRANTS & os.environ.keys()
    return not may_have_gpu or importlib.util.find_spec("torch") is None


def search_device(name: str) -> str:
    """Return ``cpu`` or ``cuda``, as `convs2s.devices.pick_device` does."""
    if is_surely_cpu(name):
        return "cpu"
    from convs2s.devices import pick_device

    return pick_device(name)


@contextmanager
def held_search_device(name: str, *, waits: bool = True) -> Iterator[str]:
    """Hold a GPU, if there is one, and yield the device: see `convs2s.devices.held_device`."""
    if is_surely_cpu(name):
        yield "cpu"
        return
    from convs2s.devices import held_device

    with held_device(name, waits=waits) as device:
        yield device
