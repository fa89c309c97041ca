"""From the bytes of a request to what it wants, with bounds on all of it."""

import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from convs2s.api.texts import check_texts
from convs2s.config.messages import validated
from convs2s.config.section import PositiveInt, Section
from convs2s.errors import UserError
from convs2s.serving.batches import Wanted
from convs2s.serving.settings import ServerSettings

DRAINED_BYTES = 16 << 20
"""Bytes of an overlong request that are read and dropped, so that its client hears the answer."""


class TooLargeError(UserError):
    """A request has more than the server takes."""


class _Request(Section):
    """What a client asks."""

    texts: list[str]
    """Sentences."""
    beam: PositiveInt
    """Hypotheses kept at each step."""
    n_best: PositiveInt = 1
    """How many of the best hypotheses each translation has."""
    attention: bool = False
    """Whether each translation has its attention."""


class Asked(NamedTuple):
    """A request that has been checked."""

    texts: list[str]
    wanted: Wanted


async def read_body(parts: AsyncIterator[bytes], most: int) -> bytes:
    """Return the body of a request.

    Args:
        parts: as they arrive.
        most: bytes at most.

    Raises:
        TooLargeError: it has more; they have been read, within reason.
    """
    body, size = bytearray(), 0
    async for part in parts:
        size += len(part)
        if size <= most:
            body += part
        elif size > DRAINED_BYTES:
            break
    if size > most:
        raise TooLargeError(
            f"request: more than {most:,} bytes, the most that this server takes: send fewer "
            "sentences at a time, or use: convs2s translate --input FILE"
        )
    return bytes(body)


def parse_request(body: bytes, settings: ServerSettings, beam: int) -> Asked:
    """Return what a request asks.

    Args:
        body: JSON.
        settings: the bounds.
        beam: where the request states none.

    Raises:
        UserError: it is no UTF-8, no JSON, has keys that there are not, or values out of bounds.
        TooLargeError: a text is too long, or there are too many.
    """
    asked = validated(_Request, {"beam": beam, **_object(body)}, "request")
    if asked.beam > settings.largest_beam:
        raise UserError(f"request: beam: expected at most {settings.largest_beam}")
    if asked.n_best > asked.beam:
        raise UserError(f"request: n_best: expected at most the beam, {asked.beam}")
    if len(asked.texts) > settings.most_texts:
        raise TooLargeError(
            f"request: {len(asked.texts)} texts, and {settings.most_texts} is the most: send them "
            "in several requests"
        )
    longest = max((len(text) for text in asked.texts), default=0)
    if longest > settings.longest_text:
        raise TooLargeError(
            f"request: a text of {longest:,} characters, and {settings.longest_text:,} bytes is "
            "the most: send one sentence at a time"
        )
    texts = check_texts(asked.texts, "request: texts", settings.longest_text)
    return Asked(texts, Wanted(asked.beam, asked.n_best, asked.attention))


def _object(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(
            f"request: not UTF-8: byte 0x{body[error.start]:02x} at {error.start}: send JSON in "
            "UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"request: not JSON: {error}: send " + '{"texts": ["..."]}') from None
    if not isinstance(found, dict):
        raise UserError('request: expected a JSON object: send {"texts": ["..."]}')
    return found
