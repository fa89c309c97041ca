"""Where a server listens, and the bounds of what it takes."""

from ipaddress import ip_address
from typing import Annotated

from pydantic import Field

from convs2s.config.section import Expecting, PositiveFloat, PositiveInt, Section, Text
from convs2s.files.limits import LONGEST_LINE_BYTES, WIDEST_BEAM


class ServerSettings(Section):
    """Options of ``convs2s serve``; each by its name."""

    host: Text = "127.0.0.1"
    """Address to listen at; any but a loopback one lets other machines ask, without a password."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    """Port to listen at; 0: any that is free."""
    largest_beam: Annotated[int, Field(ge=1, le=WIDEST_BEAM)] = 10
    """Hypotheses that a request may keep at each step, at most."""
    longest_text: Annotated[int, Field(ge=1, le=LONGEST_LINE_BYTES)] = 2000
    """Bytes of a text, as UTF-8, at most."""
    most_texts: PositiveInt = 64
    """Texts of a request at most."""
    most_waiting: PositiveInt = 512
    """Sentences that wait at most; a request beyond that is told to come again."""
    split_sentences: bool = True
    """Translate each sentence of a text by itself (docs/translating.md); a request may say no."""
    allow_origin: Annotated[str, Expecting("expected https://HOST", r"^(\*|https?://[^/]+)?$")] = ""
    """Origin, such as https://example.org, whose pages may ask (CORS), * for any; empty: none."""
    request_seconds: PositiveFloat = 30.0
    """Seconds that a client has to send its request."""
    stop_seconds: PositiveInt = 30
    """Seconds that requests have to be finished once the server is told to stop."""


def is_loopback(host: str) -> bool:
    """Return whether no other machine reaches a server that listens at an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
