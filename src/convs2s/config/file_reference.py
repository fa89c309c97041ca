"""Files as the configuration names them, and what it knows of those that are fetched."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from convs2s.config.section import Expecting, PositiveInt, Section
from convs2s.errors import UserError

_IN_ADDRESS = re.compile(r"(?<=://)[^/?#]*@")

# Where somebody forgot %XX, a password holds any character: after a colon, all up to the last @
# counts as one, at the cost of the host of an address with both a port and an @ in its path.
_USER = re.compile(r"(?<=:/)(/*)(?:[^/?#\s]*:.*@|[^/?#\s]*@)", re.DOTALL)
_QUERY = re.compile(r"(:/[^\s?]*\?)[^\s'\"]+")


def masked(text: str) -> str:
    """Return a text without the passwords of addresses in it, for messages, pages and records.

    What goes is ``USER:PASSWORD@`` before a host, and what follows a ``?``, such as a token.
    """
    return _QUERY.sub(r"\1***", _USER.sub(r"\1", text))


def with_texts(value: Any, change: Callable[[str], object]) -> Any:
    """Return a value of YAML or JSON with each text in it changed, wherever it stands."""
    if isinstance(value, Mapping):
        return {key: with_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(item, change) for item in value]
    if isinstance(value, str):
        return change(value)
    return value


def without_credentials(address: str) -> str:
    """Return an address without the ``USER:PASSWORD@`` before its host, as a server is asked."""
    return _IN_ADDRESS.sub("", address)


def authorization(address: str) -> dict[str, str]:
    """Return the header that an address's credentials make; none where it has none."""
    match = _IN_ADDRESS.search(address)
    if not match:
        return {}
    credentials = unquote(match[0].removesuffix("@"))
    token = base64.b64encode(credentials.encode()).decode()
    return {"Authorization": f"Basic {token}"}


def has_valid_port(address: str) -> bool:
    """Tell an address whose host has no port, or a number, from one cut within a password."""
    try:
        urlsplit(address).port  # noqa: B018
    except ValueError:
        return False
    return True


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_WEB_SCHEMES = ("http", "https")
_READ_SCHEMES = (*_WEB_SCHEMES, "demo", "titles")
_PLAIN_URL = re.compile(rf"({'|'.join(_READ_SCHEMES)})://[^\s\[\]\\]*")
LocalFiles = Mapping[str, Path]  # a location, as the configuration states it -> its file here


@dataclass(frozen=True)
class FileReference:
    """A text file as a task's configuration names it."""

    location: str  # a URL (http, https, demo, titles) or a path
    member: str | None  # of the archive there, or the field of a file of JSON lines

    @property
    def is_url(self) -> bool:
        """Whether the file comes into the downloads folder first."""
        return bool(_SCHEME.match(self.location))

    @property
    def is_records(self) -> bool:
        """Whether it is a file of JSON lines, compressed or not, so that its member is a field."""
        return ".jsonl" in PurePath(self.location.lower()).suffixes[-2:]

    def path(self, downloads: Path) -> Path:
        """Return where the file lies on this machine: itself, or its place among the downloads."""
        return local_path(self.location, downloads) if self.is_url else Path(self.location)


def parse_file_reference(reference: str) -> FileReference:
    """Split ``LOCATION#MEMBER``.

    Raises:
        UserError: A part is empty, or nothing reads such a file.
    """
    location, mark, member = reference.partition("#")
    shown = masked(reference)
    if not location or (mark and not member):
        raise UserError(f"{shown!r}: expected a path or URL, for archives with #MEMBER after it")
    scheme = _SCHEME.match(location)
    if scheme and scheme[1] not in _READ_SCHEMES:
        raise UserError(f"{shown}: {scheme[1]}:// is not read; give http(s) or a local path")
    parsed = FileReference(location, member or None)
    if not parsed.is_records and FileReference(member, None).is_records:
        raise UserError(f"{shown}: JSON lines of an archive are not read: unpack them")
    return parsed


def files_by_location(references: Iterable[str], files: Iterable[str]) -> LocalFiles:
    """Return where each location lies, of the files of all in the order that names them first."""
    locations = dict.fromkeys(parse_file_reference(reference).location for reference in references)
    return dict(zip(locations, map(Path, files), strict=True))


def files_of_pairs(pairs: Iterable[tuple[str, str]], files: Iterable[str]) -> LocalFiles:
    """Return the same for the references of pairs of files."""
    return files_by_location(chain.from_iterable(pairs), files)


def check_model_reference(reference: str, where: str) -> None:
    """Check what names a model file: a path or an http(s) URL, and no member of an archive."""
    if parse_file_reference(reference).member is not None:
        shown = masked(reference)
        raise UserError(f"{where}: {shown}: expected a model file, not a member of an archive")


def local_path(url: str, downloads: Path) -> Path:
    """Return the place of a URL's file: downloads/HOST/PATH, downloads/demo/PATH for demo://PATH.

    Raises:
        UserError: It is no plain http(s), demo or titles URL with a file's name at its end.
    """
    shown = masked(url)
    if not (url.isascii() and _PLAIN_URL.fullmatch(url) and has_valid_port(url)):
        raise UserError(f"{shown!r}: expected an http or https URL without blanks, accents as %XX")
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise UserError(
            f"{shown}: a URL with ?, # or @ has no place among the downloads; fetch it "
            "by hand and name the local file instead"
        )
    place = f"{parts.netloc}{parts.path}"
    if parts.scheme not in _WEB_SCHEMES:  # what the workflow makes has a folder of its own
        place = f"{parts.scheme}/{place}"
    if {"", ".", ".."} & set(place.split("/")) or not parts.path:
        raise UserError(f"{shown}: expected the URL of one file, without .., // or / at its end")
    return downloads / place


Url = Annotated[
    str,
    Expecting(
        "expected an address that starts with http:// or https:// and has no #member",
        pattern=r"^https?://[^#\s]+$",
    ),
]
Sha256 = Annotated[str, Expecting("expected 64 hexadecimal digits", pattern="^[0-9a-f]{64}$")]
Md5 = Annotated[str, Expecting("expected 32 hexadecimal digits", pattern="^[0-9a-f]{32}$")]


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
    """SPDX identifier, `LicenseRef-NAME` for terms without one (docs/data.md); null: not known."""


def download_size(location: str, downloads: Mapping[str, Download]) -> int:
    """Return the bytes of a file: to download, as stated; a user's own, as it is; else 0."""
    if "://" in location:
        known = known_download(location, downloads)
        return 0 if known is None or known.bytes is None else known.bytes
    path = Path(location)
    return path.stat().st_size if path.is_file() else 0


def known_download(url: str, downloads: Mapping[str, Download]) -> Download | None:
    """Return what is known of a URL's file, also by the other one of http and https."""
    _, _, rest = url.partition("://")
    for name in (url, f"https://{rest}", f"http://{rest}"):
        if name in downloads:
            return downloads[name]
    return None
