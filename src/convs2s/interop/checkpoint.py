"""fairseq's checkpoint files, read without trust: nothing in them is run."""

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
    """Stands for the meters of the training that checkpoints of 2018 hold: of no use here."""


ALLOWED: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
    argparse.Namespace,
    (_Meter, "fairseq.meters.AverageMeter"),
    (_Meter, "fairseq.meters.TimeMeter"),
    (_Meter, "fairseq.meters.StopwatchMeter"),
]
"""The classes that a checkpoint may hold beside tensors and plain values."""

_ZIP_START = b"PK\3\4"
"""What torch knows its layout since 2020 by; the former one is no zip archive and has no checksum.
"""


@dataclass(frozen=True)
class Checkpoint:
    """What is read of a checkpoint: the settings and weights, by fairseq's names."""

    arguments: dict[str, Any]
    weights: dict[str, Tensor]


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint of any of fairseq's layouts: settings in ``args``, or in ``cfg``.

    Raises:
        UserError: there is no such file, it is no checkpoint or damaged, or it holds an object that
            is not of an allowed class; such an object is never made.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    _check_zip(path)
    try:
        with torch.serialization.safe_globals(ALLOWED):
            content = torch.load(path, map_location="cpu", weights_only=True)
    # A file from elsewhere can make the reader of pickles stumble in any way: all are its fault.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        asked = re.search(r"\bGLOBAL (\S+)", reason)
        if asked:
            reason = f"it asks for {asked[1]}, which no checkpoint needs"
        raise UserError(f"{path}: refused, not a fairseq checkpoint: {reason[:200]}") from None
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(map(torch.is_tensor, weights.values())):
        raise UserError(f"{path}: not a fairseq checkpoint: it holds no weights under 'model'")
    for name, tensor in weights.items():
        with failures_of_file(str(path), f"not a fairseq checkpoint: {str(name)[:60]!r}"):
            is_plain = isinstance(name, str) and _is_plain(tensor)  # of a type without operations
        if not is_plain:
            raise UserError(
                f"{path}: not a fairseq checkpoint: {str(name)[:60]!r} is no plain tensor of real "
                "numbers, each of them in the file and finite"
            )
    # Until 2020 the settings were args, since then cfg.model, where args is None.
    arguments = content.get("args")
    configuration = content.get("cfg")
    if arguments is None and isinstance(configuration, dict):
        arguments = configuration.get("model")
    if not isinstance(arguments, argparse.Namespace):
        raise UserError(f"{path}: not a fairseq checkpoint: no settings under 'args' or 'cfg'")
    return Checkpoint(vars(arguments), weights)


def _check_zip(path: Path) -> None:
    """Compare each member of a zip archive with its CRC-32, which torch writes and never reads.

    torch stores members as they are, one after the other. A member that is compressed, or that
    shares its bytes with another, could take any time to sum up.
    """
    with path.open("rb") as stream:
        if stream.read(len(_ZIP_START)) != _ZIP_START:
            return
        archive = open_zip(stream, path)
        entries = archive.infolist()
        is_stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        size = sum(entry.file_size for entry in entries)
        if not is_stored or size > path.stat().st_size:
            raise UserError(f"{path}: refused, not a fairseq checkpoint: members are compressed")
        damaged = "damaged: fetch or copy the file again"
        with failures_of_file(str(path), damaged):
            member = archive.testzip()
        if member is not None:
            raise UserError(f"{path}: {damaged}: its member {member!r} has another CRC-32")


def _is_plain(tensor: Tensor) -> bool:
    """Say whether a tensor holds its numbers as they are, neither complex nor quantized.

    One that repeats some of them, as a stride of 0 does, would take any memory once it is copied.
    """
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    if tensor.is_quantized or tensor.is_complex():
        return False
    is_stored = tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
    return is_stored and bool(torch.isfinite(tensor.float()).all())


_TERM = re.compile(r"\s*(?:(\d+)\s*\*)?\s*(\[[^\[\]]*\])\s*(?:\*\s*(\d+))?\s*")


def evaluate(expression: object, name: str) -> Any:
    """Return the value of an expression such as ``[(512, 3)] * 9 + [(1024, 3)] * 4``.

    fairseq's arguments state layers so: lists of plain values, which ``+`` joins and ``*`` repeats;
    or one value alone. It is read without eval.

    Raises:
        UserError: it has anything else.
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
            items = ast.literal_eval(term[2])
            times = int(term[1] or 1) * int(term[3] or 1)
            if len(values) + len(items) * times > MOST_ITEMS:
                raise ValueError
            values += items * times
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(
            f"{name}: expected text such as '[(512, 3)] * 9 + [(1024, 3)] * 4', "
            f"not {str(expression)[:60]!r}"
        ) from None
    return values
