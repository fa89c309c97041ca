"""One source of a download, brought into a part: a mirror's folder, or a server that may fail."""

import re
import ssl
import time
import urllib.request
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Never, cast
from urllib.error import HTTPError, URLError

from convs2s.config.file_reference import authorization, has_valid_port, masked, without_credentials
from convs2s.download.partial_file import (
    BLOCK_BYTES,
    Expected,
    InterruptedTransferError,
    Origin,
    PartialFile,
    SourceError,
    StartOverError,
    WrongFileError,
)

_SILENCE_SECONDS = 60  # after so long without a byte, a connection counts as cut
_PAGES = (".html", ".htm")
_CUT = (TimeoutError, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)
_RETRIED = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class _NoFtp(urllib.request.FTPHandler):
    """Refuses redirections to ftp, which urllib would follow."""

    def ftp_open(self, _: urllib.request.Request) -> Never:
        raise URLError("a redirection to ftp")


def fetch(source: str, part: PartialFile, expected: Expected, waits: Sequence[float]) -> None:
    """Bring a whole file from an http(s) URL or a path into the part, and check it.

    Bytes that the part has from the same source are kept if they still fit. ``waits`` are seconds
    before each further try; they start anew whenever new bytes have come. A SourceError says that
    this source does not give the file, a UserError that the disk has too little space.
    """
    attempt = _download if is_url(source) else _copy
    # Whether the bytes so far are those of an earlier run.
    inherited = part.origin_from(masked(source)) is not None
    furthest = part.size if inherited else 0
    left = list(waits)
    while True:
        try:
            attempt(source, part, expected)
            return
        except InterruptedTransferError as error:
            if part.size > furthest:
                furthest = part.size
                left = list(waits)
            if isinstance(error, StartOverError):
                part.discard()
            if not left:
                raise SourceError(f"{error}, also when asked again") from None
            time.sleep(left.pop(0))
        except WrongFileError:
            if part.size or not inherited:
                raise  # what was refused unread says nothing against the bytes so far
            inherited = False  # an earlier run's bytes may be at fault: once more from the start


def is_url(source: str) -> bool:
    """Tell a URL that a server answers from a path, and from one that a password cuts."""
    return bool(re.fullmatch(r"https?://\S+", source)) and has_valid_port(source)


def _copy(source: str, part: PartialFile, expected: Expected) -> None:
    """Copy a file of a mirror's folder."""
    try:
        with Path(source).open("rb") as stream:
            size = Path(source).stat().st_size
            expected.check_size(size)
            part.begin(Origin(source, size=size))
            part.append(partial(stream.read, BLOCK_BYTES), size, expected)
    except OSError as error:  # those of the part name the output
        raise SourceError(error.strerror or str(error)) from None
    part.check(expected)


def _download(source: str, part: PartialFile, expected: Expected) -> None:
    """Ask a server for what is missing, once."""
    earlier = part.origin_from(masked(source))
    # If it is whole, it was killed between the last byte and the renaming.
    if not earlier or earlier.size != part.size:
        try:
            with _open(source, part.size if earlier else 0) as response:
                _receive(response, masked(source), part, expected)
        except (HTTPException, OSError) as error:
            raise InterruptedTransferError(f"the connection was cut: {error}") from None
    part.check(expected)


def _open(source: str, start: int) -> HTTPResponse:
    """Ask for the bytes from ``start`` on; redirections are followed."""
    request = urllib.request.Request(without_credentials(source))
    request.add_header("User-Agent", "convs2s")
    if start:
        request.add_header("Range", f"bytes={start}-")
    for name, value in authorization(source).items():
        request.add_unredirected_header(name, value)  # another host must not learn it
    opener = urllib.request.build_opener(_NoFtp)
    try:
        return cast(HTTPResponse, opener.open(request, timeout=_SILENCE_SECONDS))
    except HTTPError as error:
        error.close()
        reason = f"HTTP status {error.code} {error.reason}".replace("\n", " ").strip()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise StartOverError(reason) from None
        is_server_error = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        if is_server_error or error.code in _RETRIED:
            raise InterruptedTransferError(reason) from None
        raise SourceError(reason) from None
    except URLError as error:
        cause = error.reason
        reason = getattr(cause, "strerror", None) or str(cause)
        if isinstance(cause, _CUT):
            raise InterruptedTransferError(reason) from None
        raise SourceError(f"no connection: {reason}") from None
    except ValueError as error:  # what urllib says of a redirection that is no URL
        raise SourceError(f"no address, or a redirection to none: {error}") from None


def _receive(response: HTTPResponse, source: str, part: PartialFile, expected: Expected) -> None:
    """Append an answer's body to the part, or replace the part by it.

    A web page, such as a network's log-in, or another size is refused before the part is touched.
    """
    headers = response.headers
    is_part = response.status == HTTPStatus.PARTIAL_CONTENT
    start = None
    end = response.length
    size = end
    if is_part:
        start, end, size = _content_range(headers["Content-Range"] or "")
    origin = Origin(source, headers["ETag"], headers["Last-Modified"], size)
    expected.check_size(size)
    if headers.get_content_type() == "text/html" and not source.endswith(_PAGES):
        raise SourceError("answers with a web page")
    if is_part:
        earlier = part.origin_from(source)
        if not earlier or start != part.size or not origin.continues(earlier, expected):
            raise StartOverError("the server has another file than when the download began")
    else:
        part.begin(origin)
    total = size or expected.size or end  # all up to the end was asked for

    # What has come: waiting for a whole block would lose its beginning at a cut.
    part.append(partial(response.read1, BLOCK_BYTES), total, expected)
    if total is None:
        return
    if part.size > total:  # without locks another process may write, too
        raise StartOverError(f"has {part.size} bytes, where the server said {total}")
    if part.size < total:
        raise InterruptedTransferError(f"cut after {part.size} of {total} bytes")


def _content_range(stated: str) -> tuple[int | None, int | None, int | None]:
    """Return where an answer starts in the file, where it ends, and the whole file's size.

    The header Content-Range states them (RFC 9110, 14.4); what it does not state is None.
    """
    match = re.fullmatch(r"bytes (?P<first>\d+)-(?P<last>\d+)/(?P<size>\d+|\*)", stated)
    if match is None:
        return None, None, None
    size = None if match["size"] == "*" else int(match["size"])
    return int(match["first"]), int(match["last"]) + 1, size
