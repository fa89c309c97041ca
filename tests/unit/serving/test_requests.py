"""What a request must be, and what it is told otherwise."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from convs2s.api.translator import OF_A_MODEL
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.decoding.split_lines import SplitLines
from convs2s.errors import UserError
from convs2s.serving.requests import (
    RequestOptions,
    TooLargeError,
    check_request,
    read_body,
    read_json,
)
from convs2s.serving.settings import ServerSettings, is_loopback

SETTINGS = ServerSettings(longest_text=20, most_texts=3, largest_beam=6)
SEARCH = DecodingSettings(beam=4, minimum_length=2)


def parse(body: bytes) -> tuple[SplitLines, RequestOptions]:
    return check_request(read_json(body), SETTINGS, SEARCH, "en")


def test_what_is_not_stated_has_a_default() -> None:
    lines, options = parse(b'{"texts": ["w1"]}')
    assert lines.sentences == [(1, "w1")]
    search = SEARCH.model_dump(exclude=OF_A_MODEL)
    assert options == search | {"n_best": 1, "attention": False}
    stated = b'{"texts": [], "beam": 2, "n_best": 2, "attention": true}'
    assert parse(stated)[1] == search | {"beam": 2, "n_best": 2, "attention": True}


def test_texts_are_split_unless_the_request_or_the_server_says_no() -> None:
    stated: dict[str, object] = {"texts": ["One. Two.", "Three."]}
    split = [(1, "One."), (1, "Two."), (2, "Three.")]
    assert check_request(stated, SETTINGS, SEARCH, "en")[0].sentences == split
    whole = [(1, "One. Two."), (2, "Three.")]
    other = SETTINGS.model_copy(update={"split_sentences": False})
    assert check_request(stated, other, SEARCH, "en")[0].sentences == whole
    stated["split_sentences"] = False
    assert check_request(stated, SETTINGS, SEARCH, "en")[0].sentences == whole


BAD = {
    b"\xff{}": "can't decode byte 0xff in position 0",
    b"{": 'not JSON in UTF-8, such as {"texts": ["..."]}: Expecting property name',
    b"[" * 100_000: "maximum recursion",
    b"[]": "expected a JSON object",
    b"{}": "texts",
    b'{"texts": "w1"}': "texts: expected a list",
    b'{"texts": [1]}': "texts[0]: ",
    b'{"texts": ["w1"], "baem": 1}': "unknown key 'baem'; did you mean 'beam'",
    b'{"texts": ["w1"], "beam": 7}': "beam: expected at most 6",
    b'{"texts": ["w1"], "beam": 0}': "beam: expected at least 1",
    b'{"texts": ["w1"], "beam": 2, "n_best": 3}': "n_best: a beam of 2 finds no more than 2",
    rb'{"texts": ["w\u0000"]}': "texts:1: holds the character NUL",
    rb'{"texts": ["w1", "w\ud800"]}': "texts:2: not Unicode: half a surrogate pair",
    rb'{"texts": ["w1\nw2"]}': "texts:1: holds a line feed",
}


@pytest.mark.parametrize("body", BAD, ids=lambda body: body[:30].decode("latin-1"))
def test_a_bad_request_is_told_so_in_one_line(body: bytes) -> None:
    with pytest.raises(UserError, match=r"^request: ") as raised:
        parse(body)
    assert BAD[body] in str(raised.value)
    assert not isinstance(raised.value, TooLargeError)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["w"] * 4, "4 texts, and 3 is the most"),
        (["w" * 21], "a text of 21 bytes, and 20 is the most"),
        (["w", "é" * 11], "a text of 22 bytes, and 20 is the most"),
    ],
)
def test_a_request_has_bounds(texts: list[str], message: str) -> None:
    with pytest.raises(TooLargeError, match=message):
        parse(json.dumps({"texts": texts}).encode())


def test_attention_has_a_bound_of_its_own() -> None:
    """Its weights are as many as a text's tokens squared, for each of the best hypotheses."""
    texts = ["w" * 14, "w" * 14]
    parse(json.dumps({"texts": texts}).encode())
    parse(json.dumps({"texts": texts, "attention": True}).encode())
    for more in ({"texts": ["w" * 15] * 2}, {"texts": texts, "beam": 2, "n_best": 2}):
        with pytest.raises(
            TooLargeError, match="attention: too much text to show it for"
        ):
            parse(json.dumps({"attention": True, **more}).encode())


def test_an_overlong_body_is_read_but_not_kept() -> None:
    taken = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(100):
            taken += 1
            yield b"x" * 1000

    with pytest.raises(TooLargeError, match=r"more than 50,000 bytes"):
        asyncio.run(read_body(parts(), 50_000))
    assert taken == 100
    assert asyncio.run(read_body(parts(), 100_000)) == b"x" * 100_000


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "demo"]
)
def test_beyond_this_machine(host: str) -> None:
    assert not is_loopback(host)


def test_settings_have_bounds() -> None:
    assert ServerSettings().host == "127.0.0.1"
    with pytest.raises(
        UserError, match="options: port: expected at most 65535, not 70000"
    ):
        validated(ServerSettings, {"port": 70_000}, "options")
