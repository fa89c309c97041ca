"""Files of a format that no sound writer has made."""

import json
from contextlib import suppress

import torch
import yaml
from safetensors.torch import load, save

from convs2s.files.tensors import DIGEST, METADATA_KEY, _digest
from tests.faults.campaign.damage import Change, Draw, changed, damaged
from tests.support.archives import COMPRESS

MEMBER = "corpus/news.en"


def repacked(suffix: str, content: bytes) -> Change:
    """Damage what is within a compression, once or twice in the file."""

    def change(_: bytes, draw: Draw) -> bytes:
        packed = COMPRESS[suffix](damaged(content, draw))
        return packed * draw.choice((1, 1, 1, 2))

    return change


def odd_tensor(tensors: dict[str, torch.Tensor], draw: Draw) -> None:
    """Let one tensor be missing, or of another name, type, shape or content."""
    name = draw.choice(sorted(tensors))
    one = tensors.pop(name)
    flat = one.reshape(-1)
    changes = (
        one.float() * torch.nan,
        one.to(torch.int32),
        one.to(torch.complex64),
        flat[:1],
        flat[:0],
        flat[0],
        one[None],
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
