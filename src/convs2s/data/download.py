"""Downloads: from a mirror or from upstream to a complete file whose checksum holds.

Bytes gather in NAME.part and stay there when a download is cut, so that the next try, and the next
run, goes on from where this one stopped. Only the complete and checked file gets its name.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from convs2s.data.part import Expected, Part, SourceError, WrongFileError
from convs2s.data.transfer import fetch, is_url
from convs2s.errors import UserError
from convs2s.files import read_lines, write_lines

WAITS = (1.0, 5.0, 25.0)
"""Seconds before each further try at a server that failed."""


def local_path(url: str, downloads: Path) -> Path:
    """Return the place of a URL's file: downloads/HOST/PATH, or downloads/demo/PATH for demo://.

    Raises:
        UserError: the URL is not a plain http(s) or demo one with a file's name at its end.
    """
    return downloads / _place(url)


def download(
    url: str,
    output: Path,
    *,
    mirrors: Sequence[str] = (),
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    waits: Sequence[float] = WAITS,
) -> None:
    """Bring a file from the first source that gives the right bytes; report progress to stderr.

    Where no checksum is known, the first download's SHA-256 is recorded in NAME.sha256 beside the
    output, in the format of sha256sum, and holds from then on.

    Args:
        url: the upstream address, http or https.
        output: where the file goes; its folder is made.
        mirrors: folders or base URLs that hold https://HOST/PATH as MIRROR/HOST/PATH, asked in this
            order before upstream.
        sha256: the checksum, if known, in hexadecimal digits.
        md5: likewise.
        size: the size in bytes, if known.
        waits: seconds before each further try at a server that failed.

    Raises:
        UserError: no source gives the right file, or the disk has too little space for it.
    """
    record = output.with_name(output.name + ".sha256")
    is_recorded = not (sha256 or md5) and record.exists()
    expected = Expected(size, _read_record(record) if is_recorded else sha256, md5)
    part = Part(output)
    failures: list[tuple[str, SourceError]] = []
    for source in _sources(url, mirrors):
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            digests = fetch(source, part, expected, waits)
        except SourceError as error:
            failures.append((source, error))
            print(f"{source}: {error}", file=sys.stderr)
            continue
        if not expected.has_checksum:
            write_lines(record, [f"{digests.hexadecimal('sha256')}  {output.name}"])
        part.finish()
        return
    reasons = "; ".join(f"{source} ({error})" for source, error in failures)
    advice = _advice(url, [error for _, error in failures], record if is_recorded else None)
    raise UserError(f"{url}: no source gives this file: {reasons}; {advice}")


def _place(url: str) -> str:
    """Return HOST/PATH, which is safe to append to a folder."""
    is_demo = url.startswith("demo://")
    if not (is_url(url) or is_demo) or not url.isascii() or re.search(r"[\s\[\]\\]", url):
        raise UserError(f"{url!r}: expected an http or https URL without blanks, accents as %XX")
    parts = urlsplit(url)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise UserError(
            f"{url}: a URL with ?, # or @ has no place among the downloads; fetch it by hand and "
            "name the local file instead"
        )
    place = f"{'demo/' if is_demo else ''}{parts.netloc}{parts.path}"
    if {"", ".", ".."} & set(place.split("/")) or not parts.path:
        raise UserError(f"{url}: expected the URL of one file, without .., // or / at its end")
    return place


def _sources(url: str, mirrors: Sequence[str]) -> list[str]:
    place = _place(url)
    if not is_url(url):
        raise UserError(f"{url}: only http and https URLs are downloaded")
    for mirror in mirrors:
        if "://" in mirror and not is_url(mirror):
            raise UserError(f"mirrors: {mirror}: expected a folder or an http(s) URL")
    return [*(f"{mirror.rstrip('/')}/{place}" for mirror in mirrors), url]


def _read_record(record: Path) -> str:
    """Return the SHA-256 that the first download left."""
    line = next(read_lines(record), "")
    found = re.match(r"[0-9a-f]{64}\b", line)
    if not found:
        raise UserError(f"{record}:1: expected a SHA-256 of 64 digits; delete the file to renew it")
    return found[0]


def _advice(url: str, errors: Sequence[SourceError], record: Path | None) -> str:
    if not any(isinstance(error, WrongFileError) for error in errors):
        return (
            f"connect to the network, or set `mirrors:` in config.local.yaml to a folder or base "
            f"URL that holds {_place(url)}"
        )
    if record:
        return f"it has changed since it was first downloaded: to accept that, delete {record}"
    return (
        "a mirror is not a true copy, or upstream has changed: only if the new file is the one you "
        "want, correct its checksum and size in config/downloads.yaml"
    )
