"""fairseq's checkpoint files, read without trust: nothing in them is run."""

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.errors import UserError


class _Meter:
    """Stands for the meters of the training that checkpoints of 2018 hold: of no use here."""


ALLOWED: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
    argparse.Namespace,
    *((_Meter, f"fairseq.meters.{name}Meter") for name in ("Average", "Time", "Stopwatch")),
]
"""The classes that a checkpoint may hold beside tensors and plain values."""


@dataclass(frozen=True)
class Checkpoint:
    """What is read of a checkpoint.

    Attributes:
        arguments: the network's settings by the names of fairseq's command line.
        weights: the parameters and buffers by fairseq's names.
    """

    arguments: dict[str, Any]
    weights: dict[str, Tensor]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint of any of fairseq's layouts: settings in ``args``, or in ``cfg``.

    Raises:
        UserError: there is no such file, it is no checkpoint, or it holds any object that is not
            of an allowed class; such an object is never made.
    """
    content = _load(path)
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(map(torch.is_tensor, weights.values())):
        raise UserError(f"{path}: not a fairseq checkpoint: it holds no weights under 'model'")
    for name, tensor in weights.items():
        if not (isinstance(name, str) and _is_plain(tensor)):
            raise UserError(
                f"{path}: not a fairseq checkpoint: {str(name)[:60]!r} is no plain tensor of real "
                "numbers, each of them in the file and finite"
            )
    return Checkpoint(_arguments(content, path), weights)


def _is_plain(tensor: Tensor) -> bool:
    """Say whether a tensor holds its numbers as they are, neither complex nor quantized.

    One that repeats some of them, as a stride of 0 does, would take any memory once it is copied.
    """
    is_dense = tensor.layout == torch.strided and not tensor.is_quantized
    is_real = not tensor.is_complex() and tensor.device.type == "cpu"
    if not (is_dense and is_real):
        return False
    is_stored = tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
    return is_stored and bool(torch.isfinite(tensor.float()).all())


def _load(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with torch.serialization.safe_globals(ALLOWED):
            return torch.load(path, map_location="cpu", weights_only=True)
    # A file from elsewhere can make the reader of pickles stumble in any way: all are its fault.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        asked = re.search(r"\bGLOBAL (\S+)", reason)
        if asked:
            reason = f"it asks for {asked[1]}, which no checkpoint needs"
        raise UserError(f"{path}: refused, not a fairseq checkpoint: {reason[:200]}") from None


def _arguments(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return ``args`` (until 2020) or ``cfg.model`` (since then), where ``args`` is None."""
    configuration = content.get("cfg")
    arguments = content.get("args")
    if arguments is None and isinstance(configuration, dict):
        arguments = configuration.get("model")
    if isinstance(arguments, argparse.Namespace):
        return vars(arguments)
    raise UserError(f"{path}: not a fairseq checkpoint: it has no settings under 'args' or 'cfg'")
