"""Strategies of hypothesis: files that were sound, and are cut, flipped, spliced and blown up."""

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.support.damage import flipped

Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Draw, bytes], bytes]

HUGE = [
    "9" * 30,
    "9" * 5000,
    "-1",
    "0",
    "1e999",
    "NaN",
    "0x10",
    "1_0",
    "١",
    "-0",
    "4294967296",
]
"""What stands in a number's place."""

TOKENS = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"|||",
    b"@@",
    b"<unk>",
    b"</s>",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    "\u2028\x85\x0b\x1b[31m".encode(),
    b"<seg id=",
    b"</seg>",
    b"<doc docid=",
    b"&#1114112;",
    b"../../etc/passwd",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"- " * 3000,
    b"!!python/object/apply:os.system [ls]",
    b"&a [*a, *a]",
    b"? ",
    b"<<: ",
    b"(" * 300,
    b"word " * 2000,
    *(one.encode() for one in HUGE),
]

_NUMBER = re.compile(rb"\d+")


def _place(draw: Draw, content: bytes) -> int:
    return int(draw(st.integers(0, len(content))))


def _span(draw: Draw, content: bytes) -> tuple[int, int]:
    start = _place(draw, content)
    return start, min(len(content), start + draw(st.integers(1, 64)))


def _flip(draw: Draw, content: bytes) -> bytes:
    content = content or b"\0"
    return flipped(content, draw(st.integers(0, 8 * len(content) - 1)))


def _cut(draw: Draw, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _remove(draw: Draw, content: bytes) -> bytes:
    start, end = _span(draw, content)
    return content[:start] + content[end:]


def _repeat(draw: Draw, content: bytes) -> bytes:
    start, end = _span(draw, content)
    times: int = draw(st.sampled_from([2, 3, 50, 1000]))
    return content[:start] + content[start:end] * times + content[end:]


def _swap(draw: Draw, content: bytes) -> bytes:
    a, b, c, d = sorted((*_span(draw, content), *_span(draw, content)))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _insert(draw: Draw, content: bytes) -> bytes:
    place = _place(draw, content)
    token: bytes = draw(st.sampled_from(TOKENS))
    return content[:place] + token + content[place:]


def _overwrite(draw: Draw, content: bytes) -> bytes:
    place = _place(draw, content)
    size, order = (
        draw(st.sampled_from([1, 2, 4, 8])),
        draw(st.sampled_from(["little", "big"])),
    )
    number = draw(st.sampled_from([0, 1, (1 << 8 * size) - 1, 1 << 8 * size - 1]))
    written: bytes = number.to_bytes(size, order)
    return content[:place] + written + content[place + size :]


def _number(draw: Draw, content: bytes) -> bytes:
    found = list(_NUMBER.finditer(content[:50_000]))
    if not found:
        return content
    one: re.Match[bytes] = draw(st.sampled_from(found))
    huge: str = draw(st.sampled_from(HUGE))
    return content[: one.start()] + huge.encode() + content[one.end() :]


def _to_end(draw: Draw, content: bytes) -> bytes:
    return content + content[: _place(draw, content)]


STEPS: list[Step] = [
    _flip,
    _cut,
    _remove,
    _repeat,
    _swap,
    _insert,
    _overwrite,
    _number,
    _to_end,
]


@st.composite
def damaged(draw: Draw, content: bytes) -> bytes:
    """Draw a file with one to four faults."""
    for _ in range(draw(st.integers(1, 4))):
        content = draw(st.sampled_from(STEPS))(draw, content)
    return content


def written(separator: str, words: list[str]) -> st.SearchStrategy[bytes]:
    """Draw a text of lines whose fields are words of a format, numbers, and any others."""
    field = st.sampled_from([*words, *HUGE, "", "\u2028", "\x1b[2J"]) | st.text(
        max_size=8
    )
    line = st.lists(field, max_size=5).map(separator.join)
    lines = st.lists(line, max_size=8).map("\n".join)
    return lines.map(lambda text: text.encode("utf-8", "surrogateescape"))


def values() -> st.SearchStrategy[Any]:
    """Draw what JSON can hold, mostly what a reader does not expect."""
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        10**9,
        10**30,
        1e308,
        float("nan"),
        float("inf"),
    ]
    odd += [
        "",
        "\0",
        "\ud800",
        "x" * 3000,
        "\x1b[2J\u2028",
        [],
        {},
        [[]],
        {"": None},
        "1",
        0.5,
    ]
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    simple = st.sampled_from([*odd, deep]) | st.text(max_size=8) | st.integers(-5, 5)
    return (
        simple
        | st.lists(simple, max_size=3)
        | st.dictionaries(st.text(max_size=4), simple)
    )


@st.composite
def changed(draw: Draw, value: Any) -> Any:
    """Draw a value of JSON in which one to three places hold something else."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        value = _changed_once(draw, value)
    return value


def _changed_once(draw: Draw, value: Any) -> Any:
    # What an earlier change has made of all of it.
    if not isinstance(value, dict | list):
        return draw(values())
    keys = list(value) if isinstance(value, dict) else list(range(min(20, len(value))))
    if not keys:
        return draw(values())
    key = draw(st.sampled_from(keys))
    below = value[key]
    if isinstance(below, dict | list) and draw(st.booleans()):
        value[key] = _changed_once(draw, below)
        return value
    action = draw(st.sampled_from(["replace", "replace", "remove", "add", "wrap"]))
    if action == "remove":
        del value[key]
    elif action == "add" and isinstance(value, dict):
        value[draw(st.text(max_size=5))] = draw(values())
    elif action == "wrap":
        value[key] = [below]
    else:
        value[key] = draw(values())
    return value
