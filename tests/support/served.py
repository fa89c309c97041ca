"""A server of a model in this process, at a port of its own, and what asks it."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from convs2s.config.decoding import DecodingSettings
from convs2s.serving.settings import ServerSettings

JSON = {"Content-Type": "Application/JSON ; charset=utf-8"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

HEAD = (
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)
"""Of a request, without its end."""


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class ModelServer(NamedTuple):
    """Where it answers."""

    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = JSON,
        method: str | None = None,
    ) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        method = method or ("GET" if body is None else "POST")
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return answer

    def translate(self, *texts: str, **wanted: Any) -> Answer:
        return self.ask("/translate", json.dumps({"texts": texts, **wanted}).encode())

    def request(self, texts: list[str]) -> bytes:
        """A request, for a connection that a test handles itself."""
        body = json.dumps({"texts": texts}).encode()
        return HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)


@contextmanager
def serving(
    model: Path, search: DecodingSettings, *others: Path, **stated: Any
) -> Iterator[ModelServer]:
    """Serve models until the block ends."""
    from convs2s.api.translator import Translator
    from convs2s.serving.models import Models
    from convs2s.serving.server import web_server

    models = Models(Translator.load(path, device="cpu") for path in (model, *others))
    server = web_server(models, search, ServerSettings(**stated))
    server.config.timeout_keep_alive = 1
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield ModelServer(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
