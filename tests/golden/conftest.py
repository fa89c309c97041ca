"""What the golden tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.support.golden import DATA


@pytest.fixture
def folder() -> Path:
    """fairseq's vectors over random weights."""
    return DATA / "fairseq_random"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Compute on one thread: these networks are so small that further ones only wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
