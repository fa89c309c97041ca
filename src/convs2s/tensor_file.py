"""Tensors and a description in one safetensors file: never a pickle, and stable to the byte."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from convs2s.errors import UserError
from convs2s.files import atomic_path

METADATA_KEY = "convs2s"
"""safetensors writes several metadata keys in random order: there is one, of sorted JSON."""


def save_tensors(path: Path, tensors: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    """Write tensors and their description; the same content gives the same bytes.

    Raises:
        UserError: the file cannot be written, most likely as the disk is full; what stood under
            its name still does.
    """
    text = json.dumps(description, sort_keys=True, ensure_ascii=False)
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        with atomic_path(path) as temporary:
            save_file(contiguous, temporary, {METADATA_KEY: text})
            # safetensors makes files that their owner alone can read; ours are for whom umask says.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
    except (OSError, SafetensorError) as error:
        kept = "; the one before it is kept" if path.exists() else ""
        raise UserError(
            f"{path}: cannot be written: {error}{kept}; make room, then run the same command again"
        ) from None


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the description that ``save_tensors`` wrote.

    Raises:
        UserError: there is no such file, or it is something else.
    """
    with _opened(path, device) as stored:
        description = _description(path, stored)
        names = list(stored.keys())
        return {name: stored.get_tensor(name) for name in names}, description


def load_description(path: Path) -> dict[str, Any]:
    """Read the description alone, which takes no time.

    Raises:
        UserError: there is no such file, or it is something else.
    """
    with _opened(path, "cpu") as stored:
        return _description(path, stored)


def _description(path: Path, stored: Any) -> dict[str, Any]:
    metadata = stored.metadata() or {}
    if METADATA_KEY not in metadata:
        raise UserError(f"{path}: a safetensors file, but not one that convs2s wrote")
    description: dict[str, Any] = json.loads(metadata[METADATA_KEY])
    return description


@contextmanager
def _opened(path: Path, device: str) -> Iterator[Any]:
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with safe_open(path, framework="pt", device=device) as stored:
            yield stored
    except SafetensorError as error:
        raise UserError(
            f"{path}: not a model: expected a .safetensors file that convs2s wrote ({error})"
        ) from None
