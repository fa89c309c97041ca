"""How many threads torch computes with, where it is in use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Have this thread compute alone while the block runs."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compute_alone() -> None:
    """Have this thread compute alone from now on."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
