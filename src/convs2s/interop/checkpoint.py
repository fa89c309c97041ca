"""Read fairseq's checkpoint files without running any code that they contain."""

import argparse
import ast
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.download.archives import open_zip
from convs2s.errors import UserError, failures_of_file
from convs2s.files.limits import LONGEST_EXPRESSION, MOST_ITEMS


class _Meter:
    """Takes the place of fairseq's training meters, which checkpoints of 2018 contain.

    Their values are not used here.
    """


ALLOWED: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
    argparse.Namespace,
    (_Meter, "fairseq.meters.AverageMeter"),
    (_Meter, "fairseq.meters.TimeMeter"),
    (_Meter, "fairseq.meters.StopwatchMeter"),
]
"""The classes whose objects a checkpoint may contain, besides tensors and plain values.

A class that takes the place of another is given in a pair with the name of the other.
"""

_ZIP_START = b"PK\3\4"
"""First bytes of a file in the layout that torch has written since 2020, a zip archive.

The earlier layout is not a zip archive and has no checksums.
"""


@dataclass(frozen=True)
class Checkpoint:
    """The settings and the weights of a checkpoint, under fairseq's names."""

    arguments: dict[str, Any]
    weights: dict[str, Tensor]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint in any of fairseq's layouts, with its settings in ``args`` or in ``cfg``.

    Raises:
        UserError: the file is missing, damaged or not a checkpoint, or it contains an object of a
            class that is not allowed. Such an object is never created.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    _check_zip(path)
    try:
        with torch.serialization.safe_globals(ALLOWED):
            content = torch.load(path, map_location="cpu", weights_only=True)
    # A malicious file can make torch's unpickler raise any exception, so all of them are caught.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        # If a class is not allowed, torch's message has its name after GLOBAL.
        refused_class = re.search(r"\bGLOBAL (\S+)", reason)
        if refused_class:
            reason = f"it asks for {refused_class[1]}, which no checkpoint needs"
        raise UserError(
            f"{path}: refused, not a fairseq checkpoint: {reason[:200]}"
        ) from None
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(map(torch.is_tensor, weights.values())):
        raise UserError(
            f"{path}: not a fairseq checkpoint: it holds no weights under 'model'"
        )
    for name, tensor in weights.items():
        # _is_plain raises if torch lacks an operation for the tensor's type.
        with failures_of_file(path, f"not a fairseq checkpoint: {str(name)[:60]!r}"):
            is_plain = isinstance(name, str) and _is_plain(tensor)
        if not is_plain:
            raise UserError(
                f"{path}: not a fairseq checkpoint: {str(name)[:60]!r} is not a tensor of finite "
                "real numbers that are all in the file"
            )
    # Until 2020 fairseq kept the settings in args. Since then they are in cfg.model, and args is
    # None.
    arguments = content.get("args")
    configuration = content.get("cfg")
    if arguments is None and isinstance(configuration, dict):
        arguments = configuration.get("model")
    if not isinstance(arguments, argparse.Namespace):
        raise UserError(
            f"{path}: not a fairseq checkpoint: no settings under 'args' or 'cfg'"
        )
    return Checkpoint(vars(arguments), weights)


def _check_zip(path: Path) -> None:
    """Check the CRC-32 of each member of a zip archive, which torch writes but never checks.

    A file that is not a zip archive is not checked. torch stores members uncompressed, one after
    the other. Members that are compressed, or that overlap, are refused before they are read,
    because a small file could then expand to any number of bytes.

    Raises:
        UserError: the archive is damaged, or it is not stored as torch stores it.
    """
    with path.open("rb") as stream:
        if stream.read(len(_ZIP_START)) != _ZIP_START:
            return
        archive = open_zip(stream, path)
        entries = archive.infolist()
        is_stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        size_of_members = sum(entry.file_size for entry in entries)
        if not is_stored or size_of_members > path.stat().st_size:
            raise UserError(
                f"{path}: refused, not a fairseq checkpoint: members are compressed"
            )
        damaged = "damaged: fetch or copy the file again"
        with failures_of_file(path, damaged):
            member = archive.testzip()
        if member is not None:
            raise UserError(
                f"{path}: {damaged}: its member {member!r} has another CRC-32"
            )


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is dense and on the CPU, and its numbers are real and finite.

    A tensor with more elements than its storage holds is not plain. A stride of 0 repeats elements
    in this way, and a copy of such a tensor could need any amount of memory.
    """
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    if tensor.is_quantized or tensor.is_complex():
        return False
    fits_storage = (
        tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
    )
    return fits_storage and bool(torch.isfinite(tensor.float()).all())


# A list, optionally with a factor before or after it: [(512, 3)] * 9.
_TERM = re.compile(
    r"\s*(?:(?P<factor_before>\d+)\s*\*)?"
    r"\s*(?P<list>\[[^\[\]]*\])"
    r"\s*(?:\*\s*(?P<factor_after>\d+))?\s*"
)


def evaluate(expression: object, name: str) -> Any:
    """Return the value of an expression such as ``[(512, 3)] * 9 + [(1024, 3)] * 4``.

    This is how fairseq's settings describe layers: as lists of plain values, which ``+`` joins and
    ``*`` repeats. A single plain value, such as ``True``, is returned as it is. Python's ``eval``
    is not used, because the expression comes from a file that is not trusted.

    Raises:
        UserError: the expression is not text, is too long, has too many items, or contains anything
            else. The message begins with ``name``.
    """
    try:
        if not isinstance(expression, str) or len(expression) > LONGEST_EXPRESSION:
            raise ValueError
        if "[" not in expression:
            return ast.literal_eval(expression.strip())
        values: list[Any] = []
        for written in expression.split("+"):
            term = _TERM.fullmatch(written)
            if not term:
                raise ValueError
            items = ast.literal_eval(term["list"])
            times = int(term["factor_before"] or 1) * int(term["factor_after"] or 1)
            if len(values) + len(items) * times > MOST_ITEMS:
                raise ValueError
            values += items * times
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(
            f"{name}: expected text such as '[(512, 3)] * 9 + [(1024, 3)] * 4', "
            f"not {str(expression)[:60]!r}"
        ) from None
    return values
