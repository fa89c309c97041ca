"""Where to compute."""

import torch

from convs2s.errors import UserError


def pick_device(name: str) -> str:
    """Return the device that ``auto`` stands for on this machine, or the name itself.

    Raises:
        UserError: ``cuda`` is asked for where there is none.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UserError("device cuda: this machine has no CUDA device; set device to auto or cpu")
    if name == "auto":
        return "cuda" if available else "cpu"
    return name
