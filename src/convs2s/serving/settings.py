"""The options of the server: its address, and the limits on requests."""

from ipaddress import ip_address
from typing import Annotated

from pydantic import Field

from convs2s.config.decoding import SPLIT_SENTENCES
from convs2s.config.section import Expecting, PositiveFloat, PositiveInt, Section, Text
from convs2s.files.limits import LONGEST_LINE_BYTES, WIDEST_BEAM


class ServerSettings(Section):
    """Options of ``convs2s serve``: ``most_texts`` is the option ``--most-texts``, and so on."""

    host: Text = "127.0.0.1"
    """Address to listen at. Unless it is a loopback address, other machines can send requests
    without a password."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    """Port to listen at; 0 means any free port."""
    largest_beam: Annotated[int, Field(ge=1, le=WIDEST_BEAM)] = 10
    """Maximum number of hypotheses that a request may keep at each step of the search."""
    longest_text: Annotated[int, Field(ge=1, le=LONGEST_LINE_BYTES)] = 2000
    """Maximum size of a text, in bytes of UTF-8."""
    longest_sentence: PositiveInt = 512
    """Maximum number of tokens in a sentence. A model may have a smaller limit of its own."""
    largest_file: PositiveInt = 1_000_000
    """Maximum size of a document in bytes, as it is sent and also unpacked. Its text may be as long
    as all texts of a request together."""
    most_texts: PositiveInt = 64
    """Maximum number of texts in a request."""
    most_work: PositiveInt = 100_000
    """Maximum work of a request, which is the number of all its tokens times its beam."""
    most_waiting: PositiveInt = 512
    """Maximum number of sentences that wait. If there would be more, the largest requests are
    refused."""
    split_sentences: bool = SPLIT_SENTENCES
    """Translate each sentence of a text by itself (docs/translating.md), unless a request states
    split_sentences: false."""
    allow_origin: Annotated[
        str, Expecting("expected https://HOST", r"^(\*|https?://[^/]+)?$")
    ] = ""
    """Origin whose pages may send requests (CORS), such as https://example.org. * means any origin,
    and an empty value means none."""
    request_seconds: PositiveFloat = 30.0
    """Seconds in which a client must have sent its whole request."""
    answer_seconds: PositiveFloat = 60.0
    """Seconds in which a request must be translated. Otherwise it is refused."""
    stop_seconds: PositiveInt = 30
    """Seconds for which the server still answers waiting requests after it was told to stop."""


def is_loopback(host: str) -> bool:
    """Return whether a server at this address can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
