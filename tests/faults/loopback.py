"""A web server on the loopback interface that fails as real ones do."""

import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from itertools import pairwise
from typing import Any, NamedTuple


@dataclass
class Served:
    """A file and its server's habits."""

    body: bytes
    ranges: bool = True
    etag: str | None = None
    last_modified: str | None = None
    announced: int | None = None  # a Content-Length that is not the body's
    has_length: bool = True
    is_chunked: bool = False
    content_type: str = "application/octet-stream"
    redirect: str | None = None
    wrong_range: bool = False  # 206 answers start elsewhere than was asked
    hides_size: bool = False  # 206 answers have * for the size of the whole
    statuses: list[int] = field(default_factory=list)  # of the first answers
    # Bytes sent by the first answers with a body.
    cuts: list[int] = field(default_factory=list)
    is_silent: bool = False  # a cut answer is not closed: nothing more comes
    pause: float = 0  # seconds before each tenth of an answer
    authorization: str | None = None  # the header that is asked for
    headers: dict[str, str] = field(default_factory=dict)  # of every answer
    date: str | None = None  # what the server's clock says


class Answer(NamedTuple):
    """What the server was asked and what it sent."""

    path: str
    start: int | None
    status: int
    sent: int


class LoopbackServer:
    """The server: what it serves by path, and what it has answered."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.answers: list[Answer] = []
        self.authorizations: list[str | None] = []
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def serve(self, path: str, served: Served) -> str:
        """Serve a file; return its URL."""
        self.files[path] = served
        return f"http://{self.host}{path}"

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def send(body: bytes, stream: BufferedIOBase, pause: float) -> None:
    """Write a body in ten parts, with a pause before each."""
    bounds = [len(body) * number // 10 for number in range(11)]
    for first, last in pairwise(bounds):
        time.sleep(pause)
        stream.write(body[first:last])


class _Handler(BaseHTTPRequestHandler):
    """Answers one request by what the server is told to serve."""

    protocol_version = "HTTP/1.1"

    def __init__(self, loopback: LoopbackServer, *connection: Any) -> None:
        self.loopback = loopback
        super().__init__(*connection)

    def do_GET(self) -> None:
        self.close_connection = True
        served = self.loopback.files.get(self.path)
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        with suppress(ConnectionError):  # the client may have heard enough
            self.answer(served, int(found[1]) if found else None)

    def answer(self, served: Served | None, start: int | None) -> None:
        self.loopback.authorizations.append(self.headers.get("Authorization"))
        self.served = served or Served(b"")
        if served and served.authorization not in (
            None,
            self.headers.get("Authorization"),
        ):
            self.refuse(401, start)
        elif served is None or served.statuses:
            self.refuse(served.statuses.pop(0) if served else 404, start)
        elif served.redirect:
            self.refuse(302, start, served.redirect)
        elif served.ranges and start is not None and start >= len(served.body):
            self.refuse(416, start)
        else:
            self.give(served, start)

    def refuse(
        self, status: int, start: int | None, location: str | None = None
    ) -> None:
        self.loopback.answers.append(Answer(self.path, start, status, 0))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if location:
            self.send_header("Location", location)
        self.send_headers()

    def give(self, served: Served, asked: int | None) -> None:
        start = asked if served.ranges else None
        whole = served.body[start or 0 :]
        body = whole
        if served.cuts:
            body = body[: served.cuts.pop(0)]
        status = 200 if start is None else 206
        sent = len(body)
        self.loopback.answers.append(Answer(self.path, asked, status, sent))
        self.send_response(status)
        self.send_header("Content-Type", served.content_type)
        self.send_header("Connection", "close")
        if served.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole), whole)
            body = body[: None if sent == len(whole) else sent]
        elif served.has_length:
            self.send_header("Content-Length", str(served.announced or len(whole)))
        if start is not None:
            first = start + served.wrong_range
            last = len(served.body) - 1
            size = "*" if served.hides_size else last + 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        for name, value in (
            ("ETag", served.etag),
            ("Last-Modified", served.last_modified),
        ):
            if value:
                self.send_header(name, value)
        self.send_headers()
        send(body, self.wfile, served.pause)
        if served.is_silent and sent < len(whole):
            self.wfile.flush()
            self.loopback.over.wait()

    def send_headers(self) -> None:
        for name, value in self.served.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.served.date or super().date_time_string(timestamp)

    def log_message(self, format: str, *args: object) -> None:
        pass
