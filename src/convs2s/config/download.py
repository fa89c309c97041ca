"""config/downloads.yaml: what is fetched from the internet, and how it is known to be right."""

from collections.abc import Mapping
from typing import Annotated

from convs2s.config.fields import PositiveInt, matching
from convs2s.config.section import Section

Url = Annotated[
    str,
    matching(
        r"^https?://[^#\s]+$",
        "expected an address that starts with http:// or https:// and has no #member",
    ),
]
Sha256 = Annotated[str, matching("^[0-9a-f]{64}$", "expected 64 hexadecimal digits")]
Md5 = Annotated[str, matching("^[0-9a-f]{32}$", "expected 32 hexadecimal digits")]


class Download(Section):
    """A list of every file that is fetched from the internet, with what is known of it.

    The size and checksums are those that public registries state. Where none is known, the first
    download's own SHA-256 is recorded and enforced from then on.
    """

    url: Url
    """Address as the tasks' corpora name it."""
    bytes: PositiveInt | None = None
    """Size in bytes; null where not known."""
    sha256: Sha256 | None = None
    """SHA-256 of the file; null where not known."""
    md5: Md5 | None = None
    """MD5 of the file, used where no SHA-256 is known; null where not known."""
    licence: str | None = None
    """Terms of use, as far as known."""


def known_download(url: str, downloads: Mapping[str, Download]) -> Download | None:
    """Return what is known of a URL's file, also by the other one of http and https."""
    rest = url.partition("://")[2]
    spelt = (url, f"https://{rest}", f"http://{rest}")
    return next((downloads[one] for one in spelt if one in downloads), None)
