"""Write and read tensors and a description in one safetensors file.

Nothing is pickled, and the same content always gives the same bytes.
"""

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

Fields = dict[str, Any]
"""Values of a JSON object by their keys, or arrays or tensors by their names."""

METADATA_KEY = "convs2s"
"""The only key of the file's metadata. Its value is the description as JSON with sorted keys.

There is only one key, because safetensors writes several metadata keys in random order.
"""

DIGEST = "digest"
"""Key of the description. Its value is the SHA-256 of the tensors and of all other fields."""

WITHOUT_DIGEST = "convs2s model 2"
"""The previous format of model files. It has no digest, but is otherwise the same.

Files in this format can still be read.
"""

_TYPES = {
    "torch.int64": "I64",
    "torch.float64": "F64",
    "torch.float32": "F32",
    "torch.int32": "I32",
    "torch.bfloat16": "BF16",
    "torch.float16": "F16",
    "torch.int16": "I16",
    "torch.int8": "I8",
    "torch.uint8": "U8",
    "torch.bool": "BOOL",
}
"""Type of a tensor -> name of the type in a file, in the order in which safetensors writes types.

The widest types come first, so that all tensors are aligned.
"""

MOST_HEADER_BYTES = 100_000_000
"""Maximum size of a header in bytes that safetensors can read (its documentation, "Format")."""

# Number of bytes that a thread hashes at a time. It is part of the format: with another number, the
# digests would differ.
_PIECE_BYTES = 16 << 20


def save_tensors(
    path: Path,
    tensors: Mapping[str, "Tensor"],
    description: Mapping[str, Any],
) -> None:
    """Write tensors and their description; the same content gives the same bytes.

    The library safetensors would write the same bytes. But its function needs all tensors in main
    memory at the same time. This function copies the tensors of a GPU one after the other.

    Raises:
        UserError: the file cannot be written. A previous file at ``path`` is then kept.
    """
    _check_text(path, description)
    # The digest must be that of the description as a reader gets it. JSON turns tuples into lists
    # and keys into text.
    stated = json.loads(_json(description))
    # The digest is known only after all tensors have been written. Until then, the header contains
    # another digest of the same length in its place.
    header = _header(tensors, {**stated, DIGEST: hashlib.sha256().hexdigest()})
    if len(header) > MOST_HEADER_BYTES:
        raise UserError(
            f"{path}: types, dictionary, codes and truecased words take {len(header):,} bytes, "
            f"but safetensors can read at most {MOST_HEADER_BYTES:,}: lower alignment.pairs or the "
            "sizes of the vocabularies"
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
            # The threads hash the tensor while it is written.
            piece_digests = _start_digests(pool, content)
            stream.write(content)
            digests[name] = b"".join(piece_digests)
        digest = _combined(tensors, stated, digests)
        stream.seek(0)
        stream.write(_header(tensors, {**stated, DIGEST: digest}))


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, "Tensor"], Fields]:
    """Read the tensors and the description that ``save_tensors`` wrote.

    Raises:
        UserError: the file is missing or damaged, or ``save_tensors`` did not write it.
    """
    tensors, description = _load(path, "pt")
    return {name: tensor.to(device) for name, tensor in tensors.items()}, description


def load_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], Fields]:
    """Read the tensors as numpy arrays, without torch, and the description; see `load_tensors`."""
    import ml_dtypes  # noqa: F401, importing it adds bfloat16 to numpy

    return _load(path, "numpy")


def _load(path: Path, framework: str) -> tuple[Fields, Fields]:
    """Return the tensors (``pt``) or arrays (``numpy``), and the description without its digest."""
    with _opened(path, framework) as stored:
        description = _description(path, stored)
        tensors = {name: stored.get_tensor(name) for name in list(stored.keys())}
    stated = description.pop(DIGEST, None)
    # Old model files have the format `WITHOUT_DIGEST`. Training states of earlier versions have
    # neither a digest nor a format.
    is_old = stated is None and description.get("format") in (None, WITHOUT_DIGEST)
    if not is_old and stated != _digest(tensors, description):
        raise UserError(
            f"{path}: damaged: its content does not match its digest; fetch or make it again"
        )
    return tensors, description


def load_description(path: Path) -> Fields:
    """Read only the description. The digest is not checked, because this would need the tensors.

    Raises:
        UserError: as in ``load_tensors``, except for a wrong digest.
    """
    with _opened(path) as stored:
        description = _description(path, stored)
    description.pop(DIGEST, None)
    return description


def _json(description: Mapping[str, Any]) -> str:
    return json.dumps(description, sort_keys=True, ensure_ascii=False)


def _order(tensors: Mapping[str, "Tensor"]) -> list[str]:
    """Return the names in the order in which the tensors are written: by type, then by name."""
    types = list(_TYPES)
    return sorted(
        tensors, key=lambda name: (types.index(str(tensors[name].dtype)), name)
    )


def _header(tensors: Mapping[str, "Tensor"], description: Mapping[str, Any]) -> bytes:
    """Return the beginning of a file, up to the first tensor.

    It consists of 8 bytes with the length of a JSON text, and the JSON text ("Format" at
    github.com/huggingface/safetensors).
    """
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
    # Pad the text with spaces to a multiple of 8 bytes, so that the tensors are aligned.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _content(tensor: Any) -> memoryview:
    """Return the bytes of a numpy array, or of a torch tensor on the CPU, without a copy."""
    flat = tensor.reshape(-1)
    if isinstance(tensor, np.ndarray):
        return memoryview(flat.view(np.uint8))
    import torch  # costs nothing here, because whoever has a torch tensor has imported torch

    return memoryview(flat.view(torch.uint8).numpy())


def _start_digests(pool: ThreadPoolExecutor, content: memoryview) -> Iterator[bytes]:
    """Start to hash the pieces of a tensor in threads, and return an iterator over their SHA-256.

    The iterator yields the digests in the order of the pieces, and waits for each of them.
    """

    def digest_from(start: int) -> bytes:
        return hashlib.sha256(content[start : start + _PIECE_BYTES]).digest()

    return pool.map(digest_from, range(0, len(content), _PIECE_BYTES))


def _digest(tensors: Mapping[str, "Tensor"], description: Mapping[str, Any]) -> str:
    """Return the digest of tensors and their description, computed on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {
            name: _start_digests(pool, _content(part)) for name, part in tensors.items()
        }
        digests = {name: b"".join(pieces) for name, pieces in started.items()}
    return _combined(tensors, description, digests)


def _combined(
    tensors: Mapping[str, "Tensor"],
    description: Mapping[str, Any],
    digests: Mapping[str, bytes],
) -> str:
    """Return the digest of a file's content as hexadecimal digits.

    It is the SHA-256 of a JSON text, followed by the values of ``digests`` in the order of the
    names. The JSON text contains the description and the names, types and shapes of the tensors.
    ``digests`` contains for each tensor the SHA-256 of its pieces, one after the other.
    """
    shapes = []
    for name, tensor in sorted(tensors.items()):
        # The tensor may be an array. numpy's name of a type is torch's name without the prefix.
        type_name = str(tensor.dtype).removeprefix("torch.")
        shapes.append([name, f"torch.{type_name}", list(tensor.shape)])
    stated = _json({"description": description, "tensors": shapes})
    digest = hashlib.sha256(stated.encode())
    for name in sorted(tensors):
        digest.update(digests[name])
    return digest.hexdigest()


def _description(path: Path, stored: Any) -> Fields:
    """Return the description, with its digest, from the metadata of an open safetensors file.

    Raises:
        UserError: the description is missing or damaged.
    """
    metadata = stored.metadata() or {}
    if METADATA_KEY not in metadata:
        raise UserError(f"{path}: a safetensors file, but not one that convs2s wrote")
    problem = "found a list or a single value"
    description: Fields | None = None
    try:
        description = json.loads(metadata[METADATA_KEY])
    except (ValueError, RecursionError) as error:
        problem = str(error)
    if not isinstance(description, dict):
        raise UserError(
            f"{path}: damaged: its description is not a JSON object: {problem}; fetch or make the "
            "file again"
        )
    _check_text(path, description)
    return description


def _check_text(path: Path, description: Mapping[str, object]) -> None:
    """Raise a UserError if the description contains half a surrogate pair.

    JSON can contain half a surrogate pair as an escape, but UTF-8 cannot encode it.
    """
    try:
        _json(description).encode()
    except UnicodeEncodeError as error:
        around = ascii(error.object[max(0, error.start - 20) : error.end + 20])
        raise UserError(
            f"{path}: contains half a surrogate pair, which is not text: {around}"
        ) from None


@contextmanager
def _opened(path: Path, framework: str = "numpy") -> Iterator[Any]:
    """Open a safetensors file. Errors while it is open become a UserError that names the file."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name the model file in it")
    # For a missing or unreadable file, this raises a clearer error than safe_open would.
    open_input(path).close()
    expected = "not a model: expected a .safetensors file that convs2s wrote"
    with (
        failures_of_file(str(path), expected),
        safe_open(path, framework=framework) as stored,
    ):
        yield stored
