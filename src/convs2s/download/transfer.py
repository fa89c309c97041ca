"""Transfer a file from one source (a mirror's folder or a server) to a partial file."""

import re
import ssl
import sys
import time
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import Never, cast
from urllib.error import HTTPError, URLError

from convs2s.config.file_reference import (
    authorization,
    has_valid_port,
    masked,
    without_credentials,
)
from convs2s.download.partial_file import (
    BLOCK_BYTES,
    InterruptedTransferError,
    Origin,
    PartialFile,
    SourceError,
    StartOverError,
    WrongFileError,
)
from convs2s.files.compressed import compression_of

LONGEST_PAUSE = 300.0
"""Seconds. A server that asks to wait for longer (Retry-After) counts as one that has failed."""

# A connection without a byte for this long counts as cut.
_SILENCE_SECONDS = 60
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
# Errors of a connection that was cut.
_CUT = (TimeoutError, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)
# The statuses below 500 after which another try may succeed.
_RETRIED = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class _NoFtp(urllib.request.FTPHandler):
    """Refuses redirections to ftp URLs, which urllib would follow."""

    def ftp_open(self, _: urllib.request.Request) -> Never:
        raise URLError("a redirection to ftp")


def fetch(
    source: str,
    part: PartialFile,
    waits: Sequence[float],
) -> None:
    """Transfer a complete file from an http(s) URL or a path to a partial file, and check it.

    If the partial file has bytes from the same source, and the source still has the same file, the
    transfer resumes after these bytes. ``waits`` are the seconds to wait before each further try,
    or longer if the server asks for it. Whenever a try has brought new bytes, all of ``waits`` are
    available again.

    Raises:
        SourceError: the source does not provide the expected file.
        UserError: the disk has too little space, or cannot be written to.
    """
    attempt = _download if is_url(source) else _copy
    has_bytes_of_earlier_run = part.origin_from(masked(source)) is not None
    furthest = part.size if has_bytes_of_earlier_run else 0  # most bytes so far
    waits_left = list(waits)
    while True:
        try:
            attempt(source, part)
            part.check()
            return
        except InterruptedTransferError as error:
            if part.size > furthest:
                furthest = part.size
                waits_left = list(waits)
            if isinstance(error, StartOverError):
                part.discard()
            if not waits_left:
                raise SourceError(f"{error}, also when asked again") from None
            if error.pause:
                print(
                    f"{masked(source)}: {error}: waits {error.pause:.0f} s, as asked",
                    file=sys.stderr,
                )
            time.sleep(max(waits_left.pop(0), error.pause))
        except WrongFileError:
            # If the partial file still has bytes, the source was refused before anything was read,
            # and these bytes may be right. If it has none, the file was found wrong and discarded.
            # That may be due to bytes of an earlier run. So start at byte 0 again, but only once.
            if part.size or not has_bytes_of_earlier_run:
                raise
            has_bytes_of_earlier_run = False


def is_url(source: str) -> bool:
    """Return whether a source is a well-formed http(s) URL, and not a path.

    A URL whose password contains an unescaped character such as ``/`` is not well-formed, because
    the host then ends within the password.
    """
    return bool(re.fullmatch(r"https?://\S+", source)) and has_valid_port(source)


def _copy(source: str, part: PartialFile) -> None:
    """Copy a file from a mirror's folder to the partial file."""
    try:
        with Path(source).open("rb") as stream:
            size = Path(source).stat().st_size
            part.expected.check_size(size)
            part.begin(Origin(source, size=size))
            part.append(partial(stream.read, BLOCK_BYTES), size)
    except OSError as error:
        # The mirror's file cannot be read. Errors of the partial file are UserErrors.
        raise SourceError(error.strerror or str(error)) from None


def _download(source: str, part: PartialFile) -> None:
    """Request the missing bytes from a server once, and append them to the partial file."""
    earlier = part.origin_from(masked(source))
    if earlier and earlier.size == part.size:
        # The partial file is complete: a process was killed before it could rename the file.
        return
    # Compared with itself, the origin shows whether it can be recognized at all: if no checksum is
    # expected, it must have a strong ETag.
    can_resume = earlier is not None and earlier.continues(earlier, part.expected)
    try:
        with _open(source, part.size if can_resume else 0) as response:
            _receive(response, masked(source), part)
    except (HTTPException, OSError) as error:
        raise InterruptedTransferError(f"the connection was cut: {error}") from None


def _open(source: str, start: int) -> HTTPResponse:
    """Request the bytes from ``start`` on, and return the response; redirections are followed.

    Raises:
        StartOverError: the file ends before ``start``.
        InterruptedTransferError: the request failed, but another try may succeed.
        SourceError: the request failed for good.
    """
    request = urllib.request.Request(without_credentials(source))
    request.add_header("User-Agent", "convs2s")
    request.add_header("Accept-Encoding", "identity")
    if start:
        request.add_header("Range", f"bytes={start}-")
    for name, value in authorization(source).items():
        # The header must not be sent to another host after a redirection.
        request.add_unredirected_header(name, value)
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
            pause = _pause(error.headers)
            if pause > LONGEST_PAUSE:
                raise SourceError(
                    f"{reason}: asks to wait {pause:.0f} s: run the same command again then"
                ) from None
            raise InterruptedTransferError(reason, pause) from None
        raise SourceError(reason) from None
    except URLError as error:
        cause = error.reason
        reason = getattr(cause, "strerror", None) or str(cause)
        if isinstance(cause, _CUT):
            raise InterruptedTransferError(reason) from None
        raise SourceError(f"no connection: {reason}") from None
    except ValueError as error:
        # urllib raises this if it is redirected to something that is not a URL.
        raise SourceError(f"no address, or a redirection to none: {error}") from None


def _pause(headers: Message) -> float:
    """Return how many seconds a server asks to wait before the next request; 0 if it does not.

    The header Retry-After has seconds or a date (RFC 9110, section 10.2.3), which is compared with
    the server's own clock if it states the time. Anything else is ignored.
    """
    value = str(headers["Retry-After"] or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        now = datetime.now(UTC)
        if headers["Date"]:
            now = parsedate_to_datetime(headers["Date"])
        seconds = (parsedate_to_datetime(value) - now).total_seconds()
    except (TypeError, ValueError):
        # Retry-After is missing or no date, or only one of the two times has a time zone.
        return 0.0
    return max(0.0, seconds)


def _receive(
    response: HTTPResponse,
    source: str,
    part: PartialFile,
) -> None:
    """Append the body of a response to the partial file, or replace the partial file by it.

    Some responses are refused before the partial file is changed: a web page (such as the login
    page of a network), a file of another size than expected, a file in an encoding that was not
    asked for, and a file whose end cannot be recognized, so that a cut would not be noticed.

    Raises:
        InterruptedTransferError: the body is shorter than announced.
        StartOverError: the response does not continue the partial file, or the partial file is then
            longer than announced.
        SourceError: the response is refused.
    """
    headers = response.headers
    is_range = response.status == HTTPStatus.PARTIAL_CONTENT
    # The body has the bytes from start to before end of a file with size bytes.
    start = None
    end = response.length
    size = end
    if is_range:
        start, end, size = _content_range(headers["Content-Range"] or "")
    origin = Origin(source, headers["ETag"], headers["Last-Modified"], size)
    part.expected.check_size(size)
    if headers.get_content_type() in _PAGE_TYPES and not part.is_page:
        raise SourceError("answers with a web page")
    _check_encoding(headers, part.name)
    # The request was for all bytes up to the end of the file, so ``end`` is also the file's size.
    total = size or part.expected.size or end
    is_chunked = "chunked" in str(headers["Transfer-Encoding"]).lower()
    has_end = total is not None or is_chunked
    if not has_end and not part.shows_its_end:
        raise SourceError(
            "answers without a length, so that a cut would not be noticed: state the file's "
            "bytes or sha256 in config/downloads.yaml"
        )
    if is_range:
        earlier = part.origin_from(source)
        is_same = earlier is not None and origin.continues(earlier, part.expected)
        if not is_same or start != part.size:
            raise StartOverError(
                "the server has another file than when the download began"
            )
    else:
        part.begin(origin)
    # read1 returns the bytes that have arrived. read would wait for a whole block, and the bytes
    # before a cut would be lost.
    part.append(partial(response.read1, BLOCK_BYTES), total)
    if not has_end:  # only the content shows whether the body was cut
        try:
            part.check()
        except WrongFileError as error:
            raise StartOverError(f"cut, or another file: {error}") from None
    if total is None:
        return
    # On a file system without locks, another process may also have written to the partial file.
    if part.size > total:
        raise StartOverError(f"has {part.size} bytes, but the server announced {total}")
    if part.size < total:
        raise InterruptedTransferError(f"cut after {part.size} of {total} bytes")


def _check_encoding(headers: HTTPMessage, name: str) -> None:
    """Raise a SourceError if the body of a response is an encoded form of the file ``name``.

    Some servers state the compression of a file as the encoding of the response. This encoding is
    allowed, because the body is then the compressed file itself.
    """
    encodings = ", ".join(headers.get_all("Content-Encoding", [])).strip().lower()
    compression = compression_of(name)
    allowed = {"", "identity"}
    if compression is not None:
        allowed |= {compression.name.lower(), f"x-{compression.name.lower()}"}
    if encodings not in allowed:
        raise SourceError(
            f"answers with the file encoded by {encodings}, which was not asked for"
        )


def _content_range(header: str) -> tuple[int | None, int | None, int | None]:
    """Return the first byte of a body, the byte after its last one, and the complete file's size.

    They are parsed from the value of the header Content-Range (RFC 9110, section 14.4). A number
    that it does not contain is None.
    """
    match = re.fullmatch(r"bytes (?P<first>\d+)-(?P<last>\d+)/(?P<size>\d+|\*)", header)
    if match is None:
        return None, None, None
    size = None if match["size"] == "*" else int(match["size"])
    return int(match["first"]), int(match["last"]) + 1, size
