"""References to files in the configuration, and the entries of config/downloads.yaml."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from convs2s.config.section import Expecting, FileName, PositiveInt, Section
from convs2s.errors import UserError

_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")  # USER:PASSWORD@ of an address

# A password that was not written with %XX may have any character. Everything from a colon to the
# last @ is therefore taken as a password. In an address that has a port and an @ in its path, this
# masks the host too.
# One slash is enough, because pathlib shortens https:// to https:/.
_USER = re.compile(r"(?<=:/)(/*)(?:[^/?#\s]*:.*@|[^/?#\s]*@)", re.DOTALL)

# The query of an address, up to a blank or a quotation mark.
_QUERY = re.compile(r"(:/[^\s?]*\?)[^\s'\"]+")


def masked(text: str) -> str:
    """Return a text without the secrets in its addresses, for messages, pages and records.

    ``USER:PASSWORD@`` before a host is removed. The query after a ``?``, which may contain a token,
    is replaced by ``***``.
    """
    return _QUERY.sub(r"\1***", _USER.sub(r"\1", text))


def with_texts(value: Any, change: Callable[[str], object]) -> Any:
    """Return a copy of a value of YAML or JSON in which ``change`` is applied to every text.

    Keys of mappings are not changed.
    """
    if isinstance(value, Mapping):
        return {key: with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(item, change) for item in value]
    if isinstance(value, str):
        return change(value)
    return value


def without_credentials(address: str) -> str:
    """Return an address without ``USER:PASSWORD@`` before its host.

    A request sends the credentials in a header instead (`authorization`).
    """
    return _CREDENTIALS.sub("", address)


def authorization(address: str) -> dict[str, str]:
    """Return the header of basic authentication for an address; {} if it has no credentials."""
    match = _CREDENTIALS.search(address)
    if not match:
        return {}
    credentials = unquote(match[0].removesuffix("@"))
    token = base64.b64encode(credentials.encode()).decode()
    return {"Authorization": f"Basic {token}"}


def has_valid_port(address: str) -> bool:
    """Return whether the port of an address is a number; True if the address has no port.

    A password with a / in it makes this false: the host ends at the slash, and the beginning of the
    password is read as the port.
    """
    try:
        urlsplit(address).port  # noqa: B018
    except ValueError:
        return False
    return True


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_WEB_SCHEMES = ("http", "https")
# The workflow itself makes the files of demo:// and titles://.
_READ_SCHEMES = (*_WEB_SCHEMES, "demo", "titles")
_PLAIN_URL = re.compile(rf"({'|'.join(_READ_SCHEMES)})://[^\s\[\]\\]*")

# Location, as the configuration states it -> file on this machine.
LocalFiles = Mapping[str, Path]


@dataclass(frozen=True)
class FileReference:
    """A text file as a task's configuration names it."""

    location: str  # a URL (http, https, demo, titles) or a path
    member: str | None  # member of an archive, or field of a file of JSON lines

    @property
    def is_url(self) -> bool:
        """Whether the location is a URL, whose file the workflow puts into the downloads folder."""
        return bool(_SCHEME.match(self.location))

    @property
    def is_records(self) -> bool:
        """Whether the file has JSON lines, compressed or not, so that ``member`` is a field."""
        return ".jsonl" in PurePath(self.location.lower()).suffixes[-2:]

    def path(self, downloads: Path) -> Path:
        """Return the path of the file on this machine, which for a URL is below ``downloads``."""
        if self.is_url:
            return local_path(self.location, downloads)
        return Path(self.location)


def parse_file_reference(reference: str) -> FileReference:
    """Split ``LOCATION#MEMBER`` into its parts.

    Raises:
        UserError: The location or the member after # is empty, the scheme of a URL is not
            supported, or the member of an archive is a file of JSON lines.
    """
    location, mark, member = reference.partition("#")
    shown = masked(reference)
    if not location or (mark and not member):
        raise UserError(
            f"{shown!r}: expected a path or URL, and for an archive #MEMBER after it"
        )
    scheme = _SCHEME.match(location)
    if scheme and scheme[1] not in _READ_SCHEMES:
        raise UserError(
            f"{shown}: {scheme[1]}:// is not read; give http(s) or a local path"
        )
    parsed = FileReference(location, member or None)
    # The suffix of a member's name tells whether it has JSON lines, like that of a file.
    member_is_records = FileReference(member, None).is_records
    if member_is_records and not parsed.is_records:
        raise UserError(
            f"{shown}: JSON lines in an archive are not read: unpack the archive"
        )
    return parsed


def files_by_location(references: Iterable[str], files: Iterable[str]) -> LocalFiles:
    """Return the local file of each location.

    ``files`` has one file for each different location, in the order in which the locations first
    occur in ``references``.
    """
    locations = dict.fromkeys(
        parse_file_reference(reference).location for reference in references
    )
    return dict(zip(locations, map(Path, files), strict=True))


def _check_model_file(reference: str) -> str:
    try:
        is_file = parse_file_reference(reference).member is None
    except UserError:
        is_file = False
    if not is_file:
        raise PydanticCustomError(
            "model_file", "expected the path or http(s) URL of a model file, without #"
        )
    return reference


ModelFile = Annotated[FileName, AfterValidator(_check_model_file)]
"""The path or URL of a model file; it cannot be a member of an archive."""


def local_path(url: str, downloads: Path) -> Path:
    """Return the path of a URL's file below the downloads folder.

    The path is downloads/HOST/PATH for http and https, and downloads/demo/PATH for demo://PATH.

    Raises:
        UserError: The URL is not a plain http(s), demo or titles URL that ends with the name of a
            file.
    """
    shown = masked(url)
    if not (url.isascii() and _PLAIN_URL.fullmatch(url) and has_valid_port(url)):
        raise UserError(
            f"{shown!r}: expected an http or https URL without blanks and with accented letters "
            "written as %XX"
        )
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise UserError(
            f"{shown}: a URL with ?, # or @ has no place among the downloads; fetch it "
            "by hand and name the local file instead"
        )
    place = f"{parts.netloc}{parts.path}"
    # The files that the workflow makes have a folder of their own.
    if parts.scheme not in _WEB_SCHEMES:
        place = f"{parts.scheme}/{place}"
    has_odd_part = not {"", ".", ".."}.isdisjoint(place.split("/"))
    if has_odd_part or not parts.path:
        raise UserError(
            f"{shown}: expected the URL of one file, without .., // or / at its end"
        )
    return downloads / place


Url = Annotated[
    str,
    Expecting(
        "expected an address that starts with http:// or https:// and has no #member",
        pattern=r"^https?://[^#\s]+$",
    ),
]
Sha256 = Annotated[
    str, Expecting("expected 64 hexadecimal digits", pattern="^[0-9a-f]{64}$")
]
Md5 = Annotated[
    str, Expecting("expected 32 hexadecimal digits", pattern="^[0-9a-f]{32}$")
]


class Download(Section):
    """A list of the files that are fetched from the internet, with their sizes and checksums.

    Sizes and checksums are those that public registries state. If a file has no checksum here, the
    SHA-256 of its first download is recorded, and later downloads must have the same SHA-256.
    """

    url: Url
    """Address of the file, as the tasks' corpora name it."""
    bytes: PositiveInt | None = None
    """Size of the file in bytes; null: not known."""
    sha256: Sha256 | None = None
    """SHA-256 of the file; null: not known."""
    md5: Md5 | None = None
    """MD5 of the file, which is checked only if sha256 is null; null: not known."""
    licence: str | None = None
    """SPDX identifier of the licence, or `LicenseRef-NAME` for terms without an identifier
    (docs/data.md); null: not known."""


def download_size(location: str, downloads: Mapping[str, Download]) -> int:
    """Return the size of a file in bytes; 0 if it is not known.

    The size of a download is stated in config/downloads.yaml. The size of a local file is read from
    the disk.
    """
    if "://" in location:
        known = known_download(location, downloads)
        return 0 if known is None or known.bytes is None else known.bytes
    path = Path(location)
    return path.stat().st_size if path.is_file() else 0


def known_download(url: str, downloads: Mapping[str, Download]) -> Download | None:
    """Return the entry of a URL's file in config/downloads.yaml; None if there is none.

    The same address with http and with https names the same file.
    """
    _, _, address = url.partition("://")
    return downloads.get(f"https://{address}") or downloads.get(f"http://{address}")
