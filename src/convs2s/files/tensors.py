"""Tensors and a description in one safetensors file: never a pickle, and stable to the byte."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path, cannot_be_written

METADATA_KEY = "convs2s"
"""safetensors writes several metadata keys in random order: there is one, of sorted JSON."""

DIGEST = "digest"
"""Key of a description: SHA-256 of the tensors and of everything else that it says."""

_PIECE_BYTES = 16 << 20
"""Bytes that one thread sums up at a time."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Write tensors and their description; the same content gives the same bytes.

    A UserError says that the file cannot be written; what stood under its name still does.
    """
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    stated = json.loads(_json(description))  # as it will be read
    text = _json({**stated, DIGEST: _digest(contiguous, stated)})
    with atomic_path(path) as temporary:
        try:
            save_file(contiguous, temporary, {METADATA_KEY: text})
        except SafetensorError as error:
            raise cannot_be_written(path, str(error)) from None
        # safetensors makes files that their owner alone can read; ours are for whom umask says.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the description that ``save_tensors`` wrote.

    Raises:
        UserError: there is no such file, it is something else, or it is not as it was written.
    """
    with _opened(path) as stored:
        description = _description(path, stored)
        names = list(stored.keys())
        tensors = {name: stored.get_tensor(name) for name in names}
    stated = description.pop(DIGEST, None)  # older files have none
    if stated is not None and stated != _digest(tensors, description):
        raise UserError(
            f"{path}: damaged: its content is not what its digest says; fetch or make it again"
        )
    return {name: tensor.to(device) for name, tensor in tensors.items()}, description


def load_description(path: Path) -> dict[str, Any]:
    """Read the description alone, which takes no time; errors are those of ``load_tensors``."""
    with _opened(path) as stored:
        description = _description(path, stored)
    description.pop(DIGEST, None)
    return description


def _json(description: Mapping[str, Any]) -> str:
    return json.dumps(description, sort_keys=True, ensure_ascii=False)


def _digest(tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of tensors and their description; large ones are read by all cores."""
    ordered = sorted(tensors.items())
    shapes = [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in ordered]
    stated = _json({"description": description, "tensors": shapes})
    digest = hashlib.sha256(stated.encode(errors="surrogatepass"))  # a file may state anything
    contents = (tensor.reshape(-1).view(torch.uint8).numpy().data for _, tensor in ordered)
    pieces = (
        data[start : start + _PIECE_BYTES]
        for data in contents
        for start in range(0, len(data), _PIECE_BYTES)
    )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for piece in pool.map(hashlib.sha256, pieces):
            digest.update(piece.digest())
    return digest.hexdigest()


def _description(path: Path, stored: Any) -> dict[str, Any]:
    metadata = stored.metadata() or {}
    if METADATA_KEY not in metadata:
        raise UserError(f"{path}: a safetensors file, but not one that convs2s wrote")
    try:
        description = json.loads(metadata[METADATA_KEY])
    except (ValueError, RecursionError):
        description = None
    if not isinstance(description, dict):
        raise UserError(f"{path}: damaged: its description is not JSON; fetch or make it again")
    return description


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name the model file in it")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    expected = "not a model: expected a .safetensors file that convs2s wrote"
    with failures_of_file(str(path), expected), safe_open(path, framework="pt") as stored:
        yield stored
