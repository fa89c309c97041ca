"""Tensors and a description in one safetensors file: never a pickle, and stable to the byte."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path
from convs2s.files.compressed import open_input

if TYPE_CHECKING:
    from torch import Tensor

Fields = dict[str, Any]  # what JSON states, by name; or arrays or tensors, by theirs

METADATA_KEY = "convs2s"
"""safetensors writes several metadata keys in random order: there is one, of sorted JSON."""

DIGEST = "digest"
"""Key of a description: SHA-256 of the tensors and of everything else that it says."""

WITHOUT_DIGEST = "convs2s model 2"
"""The former format of models, which is read as well: it lacks the digest alone."""

_TYPES = {
    "torch.bool": "BOOL",
    "torch.uint8": "U8",
    "torch.int8": "I8",
    "torch.int16": "I16",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.int32": "I32",
    "torch.float32": "F32",
    "torch.float64": "F64",
    "torch.int64": "I64",
}
"""Types of tensors -> their names in a file, in the order of its format."""

MOST_HEADER_BYTES = 100_000_000  # that safetensors reads ("Format")

_PIECE_BYTES = 16 << 20  # bytes that one thread sums up at a time


def save_tensors(
    path: Path, tensors: Mapping[str, "Tensor"], description: Mapping[str, Any]
) -> None:
    """Write tensors and their description; the same content gives the same bytes.

    They are those of safetensors' own writer, which takes all tensors at once from the memory of
    the CPU. Here those of a GPU are there in turn. What cannot be written is a UserError, and what
    stood under the file's name still does.
    """
    _check_text(path, description)
    stated = json.loads(_json(description))  # as it will be read
    # Of the length that it will have: the digest is known when all tensors have been written.
    header = _header(tensors, {**stated, DIGEST: hashlib.sha256().hexdigest()})
    if len(header) > MOST_HEADER_BYTES:
        raise UserError(
            f"{path}: types, dictionary, codes and truecased words take {len(header):,} bytes, "
            f"and safetensors reads {MOST_HEADER_BYTES:,}: lower alignment.pairs, or the sizes "
            "of the vocabulary"
        )
    digests: dict[str, bytes] = {}
    with (
        atomic_path(path) as temporary,
        temporary.open("wb") as stream,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        stream.write(header)
        for name in _order(tensors):
            content = _content(tensors[name].detach().cpu().contiguous())
            started = _start_digests(pool, content)
            stream.write(content)
            digests[name] = b"".join(started)
        digest = _combined(tensors, stated, digests)
        stream.seek(0)
        stream.write(_header(tensors, {**stated, DIGEST: digest}))


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, "Tensor"], Fields]:
    """Read the tensors and the description that ``save_tensors`` wrote; else it is a UserError."""
    tensors, description = _load(path, "pt")
    return {name: tensor.to(device) for name, tensor in tensors.items()}, description


def load_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], Fields]:
    """Do as ``load_tensors``, without torch."""
    import ml_dtypes  # noqa: F401, by which numpy knows bfloat16

    return _load(path, "numpy")


def _load(path: Path, framework: str) -> tuple[Fields, Fields]:
    with _opened(path, framework) as stored:
        description = _description(path, stored)
        tensors = {name: stored.get_tensor(name) for name in list(stored.keys())}
    stated = description.pop(DIGEST, None)
    # States of trainings of before have none either, and no format.
    is_old = stated is None and description.get("format") in (None, WITHOUT_DIGEST)
    if not is_old and stated != _digest(tensors, description):
        raise UserError(
            f"{path}: damaged: its content is not what its digest says; fetch or make it again"
        )
    return tensors, description


def load_description(path: Path) -> Fields:
    """Read the description alone, its digest unchecked; other errors are ``load_tensors``' own."""
    with _opened(path) as stored:
        description = _description(path, stored)
    description.pop(DIGEST, None)
    return description


def _json(description: Mapping[str, Any]) -> str:
    return json.dumps(description, sort_keys=True, ensure_ascii=False)


def _order(tensors: Mapping[str, "Tensor"]) -> list[str]:
    """Return the names as they follow in a file: widest types first, so that all are aligned."""
    kinds = [*reversed(_TYPES)]
    return sorted(tensors, key=lambda name: (kinds.index(str(tensors[name].dtype)), name))


def _header(tensors: Mapping[str, "Tensor"], description: Mapping[str, Any]) -> bytes:
    """Return what a file begins with (github.com/huggingface/safetensors, "Format")."""
    parts: Fields = {"__metadata__": {METADATA_KEY: _json(description)}}
    start = 0
    for name in _order(tensors):
        tensor = tensors[name]
        end = start + tensor.nbytes
        parts[name] = {
            "dtype": _TYPES[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors begin at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text


def _content(tensor: Any) -> memoryview:
    flat = tensor.reshape(-1)
    if isinstance(tensor, np.ndarray):
        return memoryview(flat.view(np.uint8))
    import torch  # which is there already

    return memoryview(flat.view(torch.uint8).numpy())


def _start_digests(pool: ThreadPoolExecutor, content: memoryview) -> Iterator[bytes]:
    """Have threads sum up the pieces of a tensor; return the SHA-256 of each as it comes."""

    def digest_from(start: int) -> bytes:
        return hashlib.sha256(content[start : start + _PIECE_BYTES]).digest()

    return pool.map(digest_from, range(0, len(content), _PIECE_BYTES))


def _digest(tensors: Mapping[str, "Tensor"], description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of tensors and their description; large ones are read by all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {name: _start_digests(pool, _content(part)) for name, part in tensors.items()}
        digests = {name: b"".join(pieces) for name, pieces in started.items()}
    return _combined(tensors, description, digests)


def _combined(
    tensors: Mapping[str, "Tensor"],
    description: Mapping[str, Any],
    digests: Mapping[str, bytes],
) -> str:
    """Return the digest by those of the pieces of each tensor, end to end."""
    shapes = []
    for name, tensor in sorted(tensors.items()):
        kind = str(tensor.dtype).removeprefix("torch.")  # numpy's name has no prefix
        shapes.append([name, f"torch.{kind}", list(tensor.shape)])
    stated = _json({"description": description, "tensors": shapes})
    digest = hashlib.sha256(stated.encode(errors="surrogatepass"))  # a file may state anything
    for name in sorted(tensors):
        digest.update(digests[name])
    return digest.hexdigest()


def _description(path: Path, stored: Any) -> Fields:
    metadata = stored.metadata() or {}
    if METADATA_KEY not in metadata:
        raise UserError(f"{path}: a safetensors file, but not one that convs2s wrote")
    damaged = "damaged: its description is not JSON; fetch or make it again"
    with failures_of_file(str(path), damaged):
        description: Fields = json.loads(metadata[METADATA_KEY])
        if not isinstance(description, dict):
            raise ValueError("a value of another kind")
    _check_text(path, description)
    return description


def _check_text(path: Path, description: Mapping[str, object]) -> None:
    """Raise a UserError for half a surrogate pair, which JSON can state and no text can hold."""
    try:
        _json(description).encode()
    except UnicodeEncodeError as error:
        around = ascii(error.object[max(0, error.start - 20) : error.end + 20])
        raise UserError(f"{path}: states half a surrogate pair, no text: {around}") from None


@contextmanager
def _opened(path: Path, framework: str = "numpy") -> Iterator[Any]:
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name the model file in it")
    open_input(path).close()  # where it cannot, it says so
    expected = "not a model: expected a .safetensors file that convs2s wrote"
    with failures_of_file(str(path), expected), safe_open(path, framework=framework) as stored:
        yield stored
