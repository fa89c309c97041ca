"""Files of a format that no sound writer has made."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from contextlib import suppress
from typing import Any

import torch
import yaml
import zstandard
from safetensors.torch import load, save

from convs2s.files.tensors import DIGEST, METADATA_KEY, _digest
from convs2s.paper.ledger import fingerprint_of
from tests.faults.campaign.damage import Change, Draw, changed, changed_lines, damaged

MEMBER = "corpus/news.en"
NAMES = (
    MEMBER,
    "corpus/readme",
    "../a",
    "/a",
    "a/../../b",
    "C:\\a",
    "",
    "x" * 300,
    "é",
)
KINDS = (b"0", b"5", b"2", b"1", b"3", b"6", b"x", b"g", b"L", b"S", b"7", b"Z")
HEADERS = (
    *(b"99999999 path=a\n", b"12 size=abc\n", b"14 size=-512\n", b"x" * 9000),
    *(
        b"20 size=99999999999\n",
        b"26 GNU.sparse.size=999999\n",
        b"19 path=../../../a\n",
    ),
)

PACKERS: dict[str, tuple[Any, Any]] = {
    ".gz": (gzip.decompress, gzip.compress),
    ".bz2": (bz2.decompress, bz2.compress),
    ".xz": (lzma.decompress, lzma.compress),
    ".zst": (
        lambda content: (
            zstandard.ZstdDecompressor().decompressobj().decompress(content)
        ),
        zstandard.ZstdCompressor().compress,
    ),
}
"""Suffix -> what unpacks, and what packs."""


def repacked(suffix: str, change: Change) -> Change:
    """Change what is within a compression."""
    unpack, pack = PACKERS[suffix]

    def change_inside(content: bytes, draw: Draw) -> bytes:
        packed: bytes = pack(change(unpack(content), draw))
        return packed * draw.choice((1, 1, 1, 2))

    return change_inside


def odd_tar(_: bytes, draw: Draw) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for _number in range(draw.randint(0, 4)):
            header = tarfile.TarInfo(draw.choice((*NAMES, "\udcff")))
            header.type = draw.choice(KINDS)
            header.linkname = draw.choice(NAMES)
            data = draw.choice((b"", b"a line\n" * 9, *HEADERS))
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    content = plain.getvalue()
    return damaged(content, draw) if draw.random() < 0.5 else content


def odd_zip(_: bytes, draw: Draw) -> bytes:
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for name in dict.fromkeys(draw.choices(NAMES, k=draw.randint(0, 4))):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = draw.choice((0, 8, 12, 14))
            entry.external_attr = draw.choice((0, 0o120777 << 16, 0o020666 << 16, 16))
            archive.writestr(entry, draw.choice((b"", b"a line\n" * 9, bytes(99_999))))
    content = plain.getvalue()
    return damaged(content, draw) if draw.random() < 0.5 else content


def odd_tensor(tensors: dict[str, torch.Tensor], draw: Draw) -> None:
    """Let one tensor be missing, or of another name, type, shape or content."""
    name = draw.choice(sorted(tensors))
    one = tensors.pop(name)
    flat = one.reshape(-1)
    changes = (
        *(one.float() * torch.nan, one.to(torch.int32), one.to(torch.complex64)),
        *(flat[:1].clone(), flat[:0].clone(), flat[0].clone(), one[None].clone()),
        *(one.to(torch.float16), (one.float() + 1) * 1e30),
    )
    if draw.random() < 0.8:
        tensors[name] = draw.choice(changes)
    elif draw.random() < 0.8:
        tensors[draw.choice(("", "a.b", "x" * 2000, f"{name}.x"))] = one


def odd_tensors(content: bytes, draw: Draw) -> bytes:
    """Write tensors, or a description, that nobody would, with the right digest."""
    tensors = load(content)
    (length,) = (int.from_bytes(content[:8], "little"),)
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


def odd_checkpoint(content: bytes, draw: Draw) -> bytes:
    """Write a checkpoint of other settings, or of other tensors."""
    read = torch.load(io.BytesIO(content), weights_only=False)
    settings = vars(read["args"])
    if draw.random() < 0.5:
        odd = (
            "[(8, 3)] * 10**9",
            "[(8, 3)] * 3",
            "(" * 300,
            "[(0, 0)]",
            "True",
            None,
            -1,
        )
        others = (10**12, 1e300, "[]", [1], {"a": b""}, "\u2028\n")
        settings[draw.choice(sorted(settings))] = draw.choice((*odd, *others))
    else:
        odd_tensor(read["model"], draw)
    stream = io.BytesIO()
    torch.save(read, stream, _use_new_zipfile_serialization=draw.random() < 0.5)
    return stream.getvalue()


def odd_ledger(content: bytes, draw: Draw) -> bytes:
    """Change a ledger, and state the right fingerprints of what it holds then."""
    lines = []
    for line in changed_lines(content, draw).splitlines():
        row = json.loads(line)
        with suppress(Exception):  # what has none
            row["fingerprint"] = fingerprint_of(row["inputs"])
        lines.append(json.dumps(row))
    return "\n".join(lines).encode()


def changed_yaml(content: bytes, draw: Draw) -> bytes:
    value = changed(yaml.safe_load(content), draw)
    with suppress(yaml.YAMLError, UnicodeError, RecursionError):
        return yaml.safe_dump(value).encode("utf-8")
    return b"\xff"
