"""The mean of the parameters after the last epochs of a training."""

from pathlib import Path

import torch
from torch import Tensor

from convs2s.files.tensors import load_tensors, save_tensors


def keep_epoch(folder: Path, epoch: int, most: int, weights: dict[str, Tensor]) -> None:
    """Write the parameters after ``epoch`` (from 1), and drop those that are ``most`` older."""
    save_tensors(_path(folder, epoch), weights, {"epoch": epoch})
    _path(folder, epoch - most).unlink(missing_ok=True)


def mean_of_epochs(folder: Path, last: int, most: int) -> dict[str, Tensor]:
    """Return the mean parameters after the ``most`` epochs that end with ``last``, or all before.

    It is computed in float64, in the order of the epochs.
    """
    epochs = range(max(1, last - most + 1), last + 1)
    states = [load_tensors(_path(folder, epoch))[0] for epoch in epochs]
    return {
        name: torch.stack([state[name].double() for state in states]).mean(0).to(tensor.dtype)
        for name, tensor in states[0].items()
    }


def _path(folder: Path, epoch: int) -> Path:
    return folder / f"epoch{epoch}.safetensors"
