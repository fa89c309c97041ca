"""Strategies of hypothesis: files of a format that no sound writer has made."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import zstandard
from hypothesis import strategies as st
from safetensors.torch import save

from convs2s.files.tensors import DIGEST, METADATA_KEY, _digest, load_tensors
from convs2s.paper.ledger import fingerprint_of
from tests.faults.fuzzing.damage import Draw, changed, damaged
from tests.faults.fuzzing.samples import MEMBER

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".bz2": lambda data: bz2.compress(data, 1),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}

_NAMES = [
    MEMBER,
    "corpus/readme",
    "../a",
    "/a",
    "a/../../b",
    "C:\\a",
    "",
    "x" * 300,
    "\udcff",
    "é",
]
_KINDS = [
    tarfile.REGTYPE,
    tarfile.DIRTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.FIFOTYPE,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_SPARSE,
    tarfile.CONTTYPE,
    b"Z",
]
_PAX = [
    b"99999999 path=a\n",
    b"12 size=abc\n",
    b"14 size=-512\n",
    b"20 size=99999999999\n",
]
_PAX += [
    b"x" * 9000,
    b"11 path=a\n\n",
    b"26 GNU.sparse.size=999999\n",
    b"19 path=../../../a\n",
]


@st.composite
def tar_archives(draw: Draw) -> bytes:
    """Draw a tar archive of odd members."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for _ in range(draw(st.integers(0, 4))):
            header = tarfile.TarInfo(draw(st.sampled_from(_NAMES)))
            header.type = draw(st.sampled_from(_KINDS))
            header.linkname = draw(st.sampled_from(_NAMES))
            data = draw(st.sampled_from([b"", b"a line\n" * 9, *_PAX]))
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    content = plain.getvalue()
    return draw(damaged(content)) if draw(st.booleans()) else content


@st.composite
def zip_archives(draw: Draw) -> bytes:
    """Draw a zip archive of odd members."""
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for _ in range(draw(st.integers(0, 4))):
            entry = zipfile.ZipInfo(draw(st.sampled_from([*_NAMES[:6], "é", MEMBER])))
            entry.compress_type = draw(st.sampled_from([0, 8, 12, 14]))
            entry.external_attr = draw(
                st.sampled_from([0, 0o120777 << 16, 0o020666 << 16, 16])
            )
            archive.writestr(
                entry, draw(st.sampled_from([b"", b"a line\n" * 9, bytes(99_999)]))
            )
    content = plain.getvalue()
    return draw(damaged(content)) if draw(st.booleans()) else content


@st.composite
def compressed(draw: Draw, inner: st.SearchStrategy[bytes], suffix: str) -> bytes:
    """Draw a file whose compression is sound more often than its content."""
    content = COMPRESSORS[suffix](draw(inner))
    times: int = draw(st.sampled_from([1, 1, 1, 2]))
    content *= times
    return bytes(draw(damaged(content))) if draw(st.booleans()) else content


def json_texts(value: Any) -> st.SearchStrategy[bytes]:
    """Draw JSON that is damaged as a value, or as text."""
    text = json.dumps(value).encode()
    return changed(value).map(lambda one: json.dumps(one).encode()) | damaged(text)


def json_lines(rows: list[Any]) -> st.SearchStrategy[bytes]:
    """Draw lines of JSON of which one or all are damaged."""
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()

    def lines(found: list[Any]) -> bytes:
        written = found if isinstance(found, list) else [found]
        return "".join(f"{json.dumps(row)}\n" for row in written).encode()

    return changed(rows).map(lines) | damaged(text)


def ledgers(rows: list[Mapping[str, Any]]) -> st.SearchStrategy[bytes]:
    """Draw ledgers, also such as state the right fingerprints of wrong inputs."""

    def stamped(row: Any) -> bytes:
        if isinstance(row, dict) and isinstance(row.get("inputs"), dict):
            with suppress(ValueError, RecursionError):  # what has none
                row = {**row, "fingerprint": fingerprint_of(row["inputs"])}
        return json.dumps(row).encode() + b"\n"

    return json_lines(list(rows)) | changed(rows[0]).map(stamped)


@st.composite
def tensor_files(draw: Draw, path: Path) -> bytes:
    """Draw a file of tensors: damaged bytes, or a digest of what no writer would write."""
    if draw(st.integers(0, 2)) == 0:
        return bytes(draw(damaged(path.read_bytes())))
    tensors, description = load_tensors(path)
    if draw(st.booleans()):
        description = draw(changed(description))
    if draw(st.booleans()) or not isinstance(description, dict):
        tensors = draw(odd_tensors(tensors))
    stated = description if isinstance(description, dict) else {}
    digest = "0" * 64
    with suppress(UnicodeEncodeError):  # half of a surrogate pair has no bytes
        digest = _digest(tensors, stated)
    text = json.dumps({**stated, DIGEST: digest}, ensure_ascii=True)
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    return save(contiguous, {METADATA_KEY: text})


@st.composite
def odd_tensors(
    draw: Draw, tensors: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Draw tensors of which one is missing, or of another name, type, shape or content."""
    drawn = dict(tensors)
    name = draw(st.sampled_from(sorted(drawn)))
    one = drawn.pop(name)
    changes: list[Callable[[], torch.Tensor]] = [
        lambda: one.float() * torch.nan,
        lambda: one.to(torch.int32),
        lambda: one.to(torch.float16),
        lambda: one.to(torch.complex64),
        lambda: one.reshape(-1)[:1],
        lambda: one.reshape(-1)[:0],
        lambda: one.reshape(-1)[0].clone(),
        lambda: one.reshape(1, *one.shape),
        lambda: torch.full_like(one, 1e30) if one.is_floating_point() else one - 10**6,
    ]
    action = draw(st.integers(0, len(changes) + 1))
    if action < len(changes):
        drawn[name] = changes[action]()
    elif action == len(changes):
        drawn[draw(st.sampled_from(["", "a.b", "x" * 2000, f"{name}.x"]))] = one
    return drawn


@st.composite
def checkpoints(draw: Draw, path: Path) -> bytes:
    """Draw a checkpoint of fairseq's: damaged bytes, other settings, other tensors."""
    if draw(st.booleans()):
        return bytes(draw(damaged(path.read_bytes())))
    content = torch.load(path, weights_only=False)
    settings = vars(content["args"])
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(settings)))
        odd = [
            "[(8, 3)] * 10**9",
            "[(8, 3)] * 3",
            "(" * 300,
            "[(0, 0)]",
            "-1",
            "True",
            None,
            1e300,
        ]
        settings[key] = draw(
            st.sampled_from([*odd, -1, 10**12, "[]", [1], {"a": b""}, "\u2028\n"])
        )
    else:
        content["model"] = draw(odd_tensors(content["model"]))
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=draw(st.booleans()))
    return stream.getvalue()
