"""A web server on the loopback interface that fails as real ones do."""

import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """A file and its server's habits."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)  # of every answer
    statuses: list[int] = field(default_factory=list)  # of the first answers
    # Bytes sent by the first answers with a body.
    cuts: list[int] = field(default_factory=list)
    is_silent: bool = False  # a cut answer is not closed: nothing more comes
    pause: float = 0  # seconds before each tenth of an answer
    has_length: bool = True
    announced: int | None = None  # a Content-Length that is not the body's
    is_chunked: bool = False
    ranges: bool = True
    wrong_range: bool = False  # 206 answers start elsewhere than was asked
    hides_size: bool = False  # 206 answers have * for the size of the whole


class LoopbackServer(ThreadingHTTPServer):
    """The server: what it serves by path, and what it was asked and has answered."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.host = f"127.0.0.1:{self.server_port}"
        self.files: dict[str, Served] = {}
        self.paths: list[str] = []
        self.answers: list[str] = []
        """FIRST BYTE ASKED FOR:STATUS:BYTES SENT of each answer."""
        self.authorizations: list[str | None] = []
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def serve(self, path: str, served: Served) -> str:
        """Serve a file; return its URL."""
        self.files[path] = served
        return f"http://{self.host}{path}"

    def close(self) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request by what the server is told to serve."""

    protocol_version = "HTTP/1.1"
    server: LoopbackServer

    def do_GET(self) -> None:
        self.close_connection = True
        absent = Served(b"", statuses=[404])
        self.served = self.server.files.get(self.path, absent)
        self.server.paths.append(self.path)
        self.server.authorizations.append(self.headers.get("Authorization"))
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        with suppress(ConnectionError):  # the client may have heard enough
            self.answer(int(found[1]) if found else 0)

    def answer(self, start: int) -> None:
        served = self.served
        size = len(served.body)
        status = 206 if served.ranges and start else 200
        whole = served.body[start:] if status == 206 else served.body
        if served.statuses:
            status = served.statuses.pop(0)
            whole = b""
        elif status == 206 and start >= size:
            status = 416
        body = whole
        if served.cuts and whole:
            body = whole[: served.cuts.pop(0)]
        is_cut = len(body) < len(whole)
        self.server.answers.append(f"{start}:{status}:{len(body)}")
        self.send_response_only(status)
        headers = {"Content-Type": "application/octet-stream", "Connection": "close"}
        if served.is_chunked:
            headers["Transfer-Encoding"] = "chunked"
            chunk = b"%x\r\n%b\r\n" % (len(whole), whole)
            body = chunk[: len(body)] if is_cut else chunk + b"0\r\n\r\n"
        elif served.has_length:
            headers["Content-Length"] = str(served.announced or len(whole))
        if status == 206:
            first = start + served.wrong_range
            shown = "*" if served.hides_size else size
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{shown}"
        for name, value in (headers | served.headers).items():
            self.send_header(name, value)
        self.end_headers()
        for part in range(10):
            time.sleep(served.pause)
            bounds = len(body) * part // 10, len(body) * (part + 1) // 10
            self.wfile.write(body[slice(*bounds)])
        if served.is_silent and is_cut:
            self.wfile.flush()
            self.server.over.wait()
