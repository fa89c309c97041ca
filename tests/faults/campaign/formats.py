"""Files of a format that no sound writer has made."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from contextlib import suppress

import torch
import yaml
import zstandard
from safetensors.torch import load, save

from convs2s.files.tensors import DIGEST, METADATA_KEY, _digest
from tests.faults.campaign.damage import Change, Draw, changed
from tests.support.archives import COMPRESS

MEMBER = "corpus/news.en"


def _unpack_zstandard(content: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": _unpack_zstandard,
}


def repacked(suffix: str, change: Change) -> Change:
    """Change what is within a compression."""
    unpack, pack = UNPACK[suffix], COMPRESS[suffix]

    def change_inside(content: bytes, draw: Draw) -> bytes:
        packed = pack(change(unpack(content), draw))
        return packed * draw.choice((1, 1, 1, 2))

    return change_inside


def odd_tensor(tensors: dict[str, torch.Tensor], draw: Draw) -> None:
    """Let one tensor be missing, or of another name, type, shape or content."""
    name = draw.choice(sorted(tensors))
    one = tensors.pop(name)
    flat = one.reshape(-1)
    changes = (
        one.float() * torch.nan,
        one.to(torch.int32),
        one.to(torch.complex64),
        flat[:1].clone(),
        flat[:0].clone(),
        flat[0].clone(),
        one[None].clone(),
        one.to(torch.float16),
        (one.float() + 1) * 1e30,
    )
    if draw.random() < 0.8:
        tensors[name] = draw.choice(changes)
    elif draw.random() < 0.8:
        tensors[draw.choice(("", "a.b", "x" * 2000, f"{name}.x"))] = one


def odd_tensors(content: bytes, draw: Draw) -> bytes:
    """Write tensors, or a description, that nobody would, with the right digest."""
    tensors = load(content)
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    description = json.loads(header["__metadata__"][METADATA_KEY])
    description.pop(DIGEST)
    if draw.random() < 0.5:
        odd_tensor(tensors, draw)
    else:
        description = changed(description, draw)
    stated = description if isinstance(description, dict) else {}
    with suppress(UnicodeEncodeError):  # half of a surrogate pair has no bytes
        stated = stated | {DIGEST: _digest(tensors, stated)}
    return save(tensors, {METADATA_KEY: json.dumps(stated)})


def changed_yaml(content: bytes, draw: Draw) -> bytes:
    value = changed(yaml.safe_load(content), draw)
    with suppress(yaml.YAMLError, UnicodeError, RecursionError):
        return yaml.safe_dump(value).encode("utf-8")
    return b"\xff"
