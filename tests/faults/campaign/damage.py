"""Files that were sound, and are cut, flipped, blown up, or hold what no writer writes."""

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import yaml
from safetensors.torch import load, save

from convs2s.files.tensors import DIGEST, METADATA_KEY, _digest
from tests.support.archives import flipped

Draw = random.Random
Change = Callable[[bytes, Draw], bytes]
"""Changes the content of a file."""

NUMBERS = ["-1", "0", "1e999", "NaN", "0x10", "1_0", "١", "-0", "9" * 30, "9" * 5000]
"""What stands in a number's place."""

MARKS: list[str] = json.loads(r"""[
    "", "\u0000", "\n", "\r", "\t", " ", "|||", "@@", "<unk>", "</s>", "\ufeff",
    "\u2028\u0085\u000b\u001b[31m", "<seg id=", "</seg>", "<doc docid=", "&#1114112;",
    "../../etc/passwd", "!!python/object/apply:os.system [ls]", "&a [*a, *a]", "? ", "<<: ",
    "\udcff", "\udcc3"
]""")
LONG = ["[" * 3000, '{"a":' * 3000, "- " * 3000, "(" * 300, "word " * 2000]
WORDS = [*NUMBERS, *LONG, *MARKS]
"""What is inserted; of bytes that are not UTF-8, the last two."""

VALUES: list[Any] = json.loads(r"""[
    null, true, -1, 0, 1, 0.5, 1000000000, 1000000000000000000000000000000, 1e308, NaN, Infinity,
    "1", "", "\u0000", "\ud800", "\u001b[2J\u2028", [], {}, [[]], {"": null}
]""")
VALUES += ["x" * 3000, json.loads("[" * 200 + "]" * 200)]
"""What JSON can hold, mostly what a reader does not expect."""


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _flip(content: bytes, draw: Draw) -> bytes:
    content = content or b"\0"
    return flipped(content, draw.randrange(8 * len(content)))


def _cut(content: bytes, draw: Draw) -> bytes:
    return content[: draw.randint(0, len(content))]


def _repeat(content: bytes, draw: Draw) -> bytes:
    start = draw.randint(0, len(content))
    end = start + draw.randint(1, 64)
    times = draw.choice((0, 2, 50, 1000))
    return content[:start] + content[start:end] * times + content[end:]


def _insert(content: bytes, draw: Draw) -> bytes:
    place = draw.randint(0, len(content))
    return content[:place] + encoded(draw.choice(WORDS)) + content[place:]


def _overwrite(content: bytes, draw: Draw) -> bytes:
    place = draw.randint(0, len(content))
    size = draw.choice((1, 2, 4, 8))
    number = draw.choice((0, 1, 1 << 8 * size - 1, (1 << 8 * size) - 1))
    written = number.to_bytes(size, draw.choice(("little", "big")))
    return content[:place] + written + content[place + size :]


def _number(content: bytes, draw: Draw) -> bytes:
    found = list(re.finditer(rb"\d+", content[:50_000]))
    if not found:
        return content
    start, end = draw.choice(found).span()
    return content[:start] + draw.choice(NUMBERS).encode() + content[end:]


def damaged(content: bytes, draw: Draw) -> bytes:
    """Give a file one to four faults."""
    for _ in range(draw.randint(1, 4)):
        change = draw.choice((_flip, _cut, _repeat, _insert, _overwrite, _number))
        content = change(content, draw)
    return content


def rewritten(content: bytes, draw: Draw) -> bytes:
    """Write lines of the words of a file, in any order, and of others."""
    pieces = re.split(r"([ \t\n])", content.decode("utf-8", "surrogateescape"))
    pieces += WORDS
    return encoded("".join(draw.choices(pieces, k=draw.randint(0, 40))))


def changed(value: Any, draw: Draw) -> Any:
    """Put something else into one place of a value of JSON."""
    if not isinstance(value, dict | list) or not value:
        return draw.choice(VALUES)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw.choice(keys[:20])
    action = draw.choice(("below", "below", "replace", "remove", "wrap"))
    if action == "below":
        value[key] = changed(value[key], draw)
    elif action == "remove":
        del value[key]
    else:
        value[key] = draw.choice(VALUES) if action == "replace" else [value[key]]
    return value


def changed_json(content: bytes, draw: Draw) -> bytes:
    return json.dumps(changed(json.loads(content), draw)).encode()


def changed_lines(content: bytes, draw: Draw) -> bytes:
    """Change a value of the list of JSON lines."""
    rows = changed([json.loads(line) for line in content.splitlines()], draw)
    listed = rows if isinstance(rows, list) else [rows]
    return "".join(f"{json.dumps(row)}\n" for row in listed).encode()


def odd_tensor(tensors: dict[str, torch.Tensor], draw: Draw) -> None:
    """Let one tensor be missing, or of another name, type, shape or content."""
    name = draw.choice(sorted(tensors))
    one = tensors.pop(name)
    changes = (
        one.float() * torch.nan,
        one.to(torch.complex64),
        one.to(torch.float16),
        one.reshape(-1)[:0],
        one.reshape(-1)[0],
        one[None],
        (one.float() + 1) * 1e30,
    )
    if draw.random() < 0.9:
        tensors[draw.choice((name, name, name, "a.b"))] = draw.choice(changes)


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


CHANGES: dict[str, Change] = {
    ".arrow": damaged,
    ".json": changed_json,
    ".jsonl": changed_lines,
    ".pt": damaged,
    ".safetensors": odd_tensors,
    ".tar": damaged,
    ".yaml": changed_yaml,
    ".zip": damaged,
}
"""Suffix of a file -> what changes its content as nobody would; of others, `rewritten` does."""
