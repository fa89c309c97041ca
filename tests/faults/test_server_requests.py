"""Requests and clients that the server refuses: bad ones, too large ones, slow ones, deaf ones."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from io import BytesIO
from itertools import count
from pathlib import Path
from resource import RLIM_INFINITY
from threading import Event
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from pydantic import ValidationError

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.parallel import Stop, StoppedError
from convs2s.models.onnx_builder import RunOptions
from convs2s.serving import connections
from convs2s.serving.libretranslate import LibreTranslateRequest
from convs2s.serving.models import Models
from convs2s.serving.requests import OwnRequest, check_request
from convs2s.serving.settings import ServerSettings, is_loopback
from tests.conftest import Terminal
from tests.support.processes import wait_for
from tests.support.refusals import refusal, says
from tests.support.served import FORM, HEAD, JSON, ModelServer, serving

SEARCH = DecodingSettings(beam=3, minimum_length=2)


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(
        sharp,
        SEARCH,
        request_seconds=0.5,
        most_waiting=80,
        largest_beam=6,
        longest_text=400,
        most_work=2000,
        largest_file=50_000,
    ) as running:
        yield running


# ---- what a request is ----

W = ["w1"]
LANGUAGES = {"source": "en", "target": "fr"}

BODIES: tuple[tuple[object, int, list[str]], ...] = (
    (b'{"texts": ["\xff"]}', 400, ["byte 0xff in position 12"]),
    (b"{", 400, ["not JSON in UTF-8", "Expecting property name"]),
    (b"[" * 100_000, 400, ["maximum recursion"]),
    ([], 400, ["expected a JSON object"]),
    ({"texts": "w1"}, 400, ["texts: expected a list"]),
    ({"texts": W, "baem": 1}, 400, ["'baem'", "did you mean 'beam'"]),
    ({"texts": W, "beam": 7}, 400, ["beam: expected at most 6"]),
    ({"texts": W, "beam": 2, "n_best": 3}, 400, ["n_best: a beam of 2"]),
    ({"texts": ["w1", "w\ud800"]}, 400, ["texts:2: not Unicode"]),
    ({"texts": W * 65}, 413, ["65 texts", "at most 64 are allowed"]),
    ({"texts": ["w", "é" * 201]}, 413, ["402 bytes", "at most 400 are allowed"]),
    ({"texts": ["W1. W2. W3."] * 30}, 413, ["90 sentences", "at most 80 are allowed"]),
    # Attention has a weight for each pair of tokens, for each of the best hypotheses.
    (
        {"texts": ["w" * 283], "attention": True, "n_best": 2},
        413,
        ["attention: too much text"],
    ),
    ({"texts": ["w" * 200_000]}, 413, ["more than 157,696 bytes"]),
    # The model reads 63 tokens. Dense punctuation has a token for each two bytes.
    (
        {"texts": ["w1", "w2 " * 64]},
        413,
        ["sentence of 64 tokens", "at most 63 are allowed"],
    ),
    ({"texts": [". " * 200]}, 413, ["sentence of 200 tokens", "split it"]),
    ({"texts": ["w1 " * 60] * 6, "beam": 6}, 413, ["more than 2,000", "smaller beam"]),
    ({"texts": ["w1"] + [1] * 40_000}, 400, ["texts[1]: expected a valid string"]),
    ({"w" * 100_000: 1}, 400, ["unknown key 'wwww"]),
    ({"q": "w1", "source": "de", "target": "fr"}, 400, ["'de'", "expected en to fr"]),
    ({"q": "w1", "source": "en", "target": "es"}, 400, ["'es'", "expected en to fr"]),
    ({"texts": W, "target": "en"}, 400, ["'auto' to 'en' is not supported"]),
    ({"q": "w1", **LANGUAGES, "format": "xml"}, 400, ["expected 'text' or 'html'"]),
    ({"q": "<p>w1</p>" * 65, **LANGUAGES, "format": "html"}, 413, ["65 texts"]),
    ({"q": "w1", **LANGUAGES, "alternatives": -1}, 400, ["alternatives: ", "least 0"]),
    (LANGUAGES, 400, ["key 'q' is missing"]),
    ({"q": "w1\n" * 64, **LANGUAGES}, 413, ["65 texts", "at most 64 are allowed"]),
)


@pytest.mark.parametrize(("body", "status", "words"), BODIES)
def test_a_bad_request_is_told_why(
    server: ModelServer, body: object, status: int, words: list[str]
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = server.ask("/translate", content)
    assert answer.status == status
    says(answer.content["error"], "request: " if "texts" in repr(body) else "", *words)


def part(name: str, value: bytes) -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value + b"\r\n"


def file(name: str, content: bytes) -> bytes:
    head = (
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    )
    return head.encode() + content + b"\r\n--b--"


def zipped(content: bytes) -> bytes:
    stream = BytesIO()
    with ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", content)
    return stream.getvalue()


PARTS = {"Content-Type": "multipart/form-data; boundary=b"}
FILE = file("a.txt", b"w1")
FROM_A_PAGE = {**FORM, "Sec-Fetch-Site": "cross-site"}
OPTIONS = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/translate", b"{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/translate", b"{}", {}, 415),
        ("POST", "/translate", b"{}", {**JSON, "Host": "elsewhere.example"}, 421),
        ("POST", "/translate", b"{}", {**JSON, "Host": "[::1"}, 421),
        ("GET", "/translate", None, {}, 405),
        ("OPTIONS", "/translate", None, OPTIONS, 405),
        ("GET", "/nowhere", None, {}, 404),
        # A form is taken from programs alone, not from any page.
        ("POST", "/translate", b"q=w1&source=en&target=fr", FROM_A_PAGE, 415),
        ("POST", "/translate?q=w1", None, {"Origin": "null"}, 415),
        ("POST", "/translate", b"q=\xff", FORM, 400),
        ("POST", "/translate", b"q=1&" * 101, FORM, 400),
        ("POST", "/translate", b"q=w1&q=w2&source=en&target=fr", FORM, 400),
        ("GET", "/detect", None, {}, 405),
        ("POST", "/detect", b"{}", JSON, 400),
        ("POST", "/detect", b"q=w1", {**FORM, "Origin": "null"}, 415),
        ("POST", "/detect", b"", {**PARTS, "Sec-Fetch-Site": "none"}, 415),
        ("POST", "/detect", b"", PARTS, 400),
        ("POST", "/detect", part("q", b"w1"), PARTS, 400),  # without an end
        ("POST", "/detect", part("q", b"\xff") + b"--b--", PARTS, 400),
        ("POST", "/detect", part("q", b"") * 2 + b"--b--", PARTS, 400),
        ("POST", "/detect", part("q" * 2000, b"") + b"--b--", PARTS, 400),
        ("POST", "/detect", b"--b\r\n\r\n\r\n--b--", PARTS, 400),  # without a name
        ("POST", "/detect", b"\r\n--b" * 101 + b"--", PARTS, 400),
        ("POST", "/detect", b"--", {"Content-Type": "multipart/form-data"}, 400),
        ("POST", "/translate_file", b'{"file": "a"}', JSON, 400),
        ("POST", "/translate_file", part("file", b"w1") + b"--b--", PARTS, 400),
        ("POST", "/translate_file", file("a.md", b"w1"), PARTS, 400),
        ("POST", "/translate_file", file("a.docx", b"w1"), PARTS, 400),
        ("POST", "/translate_file", file("a.txt", b"w\xff"), PARTS, 400),
        ("POST", "/translate_file", part("source", b"de") + FILE, PARTS, 400),
        ("POST", "/translate_file", FILE, {**PARTS, "Origin": "null"}, 415),
        # Its size, unpacked too; its text; its sentences; its work.
        ("POST", "/translate_file", file("a.txt", b"w1 " * 20_000), PARTS, 413),
        ("POST", "/translate_file", file("a.docx", zipped(b" " * 60_000)), PARTS, 400),
        (
            "POST",
            "/translate_file",
            file("a.html", (b"<p>" + b"w" * 20_000) * 2),
            PARTS,
            413,
        ),
        ("POST", "/translate_file", file("a.html", b"<p>w1" * 81), PARTS, 413),
        ("POST", "/translate_file", file("a.txt", b"W1 w2 w3. " * 70 * 3), PARTS, 413),
        ("GET", "/download_file/a.txt", None, {}, 404),
    ],
)
def test_other_requests_are_refused(
    server: ModelServer,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
) -> None:
    answer = server.ask(path, body, headers, method)
    assert answer.status == status
    assert answer.content["error"]


@pytest.mark.parametrize(
    "fields",
    [{"texts": [1] * 1000}, {"q": [1] * 1000, **LANGUAGES}, {"q": [[]] * 1000}],
)
def test_of_a_thousand_wrong_texts_one_is_reported(fields: dict[str, Any]) -> None:
    """The report of each took milliseconds for a thousand, and seconds for a full request."""
    section = LibreTranslateRequest if "q" in fields else OwnRequest
    with pytest.raises(ValidationError) as caught:
        section.model_validate(fields)
    assert caught.value.error_count() < 5


@pytest.mark.parametrize(
    "text", ["://" + "a:" * 370_000, ":/" * 370_000, "://@" + ":/a:" * 180_000]
)
@pytest.mark.parametrize("fields", [{"texts": "{}"}, {"{}": 1}])
def test_the_message_about_a_large_text_takes_no_time(
    fields: dict[str, Any], text: str
) -> None:
    """A message shows no password, and the search for one took a minute."""
    wrong = {key.format(text): str(value).format(text) for key, value in fields.items()}
    started = time.process_time()
    message = refusal(
        check_request, wrong, ServerSettings(), DecodingSettings(), Models([])
    )
    assert time.process_time() - started < 5
    assert len(message) < 2000


def test_attention_of_a_model_without_any_is_the_clients_mistake(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "attends", False)
    with serving(sharp, SEARCH) as running:
        answer = running.translate("w1", attention=True)
    assert answer.status == 400
    says(answer.content["error"], "request: attention: the model of these languages")


def test_a_busy_server_and_one_that_stops_tell_to_come_again(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = "convs2s.serving.batches.Batches"
    monkeypatch.setattr(f"{batches}.waiting", 60)
    answer = server.translate(*["w1"] * 21)
    assert answer.status == 503
    says(answer.content["error"], "60 sentences wait", "at most 80 may", "again")

    async def cut_off(*_: object) -> None:
        # As uvicorn does to every request, after stop_seconds.
        raise asyncio.CancelledError

    monkeypatch.setattr(f"{batches}.translate", cut_off)
    answer = server.translate("w1")
    assert answer.status == 503
    says(answer.content["error"], "the server is shutting down")


# ---- what ends a translation ----


@pytest.mark.parametrize("ends", ["late", "leaves", "stops"])
def test_a_translation_that_nobody_waits_for_is_stopped(
    sharp: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    begun = Event()
    ended = Event()
    released = Event()  # ends what does not look whether it is stopped

    def translate_for_ever(
        _: object, __: object, stopped: Event, **___: object
    ) -> None:
        begun.set()
        if stopped.wait(100) and (ends != "stops" or released.wait(100)):
            ended.set()
        raise StoppedError

    def read_for_ever(_: object, __: str) -> list[str]:
        begun.set()
        released.wait(100)
        return []

    monkeypatch.setattr(Translator, "translate_tokens", translate_for_ever)
    seconds = 0.5 if ends == "late" else 90
    with serving(sharp, SEARCH, answer_seconds=seconds, stop_seconds=1) as running:
        asking = running.connect()
        asking.sendall(running.request(["w1"]))
        assert begun.wait(60)
        if ends == "late":
            assert b"not translated within 0.5 s" in asking.makefile("rb").read()
        if ends == "leaves":
            asking.close()
        if ends != "stops":
            assert ended.wait(60)
        else:
            begun.clear()
            monkeypatch.setattr(Translator, "tokens", read_for_ever)
            reading = running.connect()
            reading.sendall(running.request(["w1 " * 500]))
            assert begun.wait(60)
        stopping = time.monotonic()
    assert ends != "stops" or not ended.is_set()
    released.set()
    assert ended.wait(60)
    # Of the second more than --stop-seconds, the rest is for a machine that is busy.
    assert time.monotonic() - stopping < 30
    if ends == "stops":
        for client in (asking, reading):
            assert b"shutting down" in client.makefile("rb").read()
        reading.close()
    asking.close()


def test_a_search_is_stopped_between_its_steps(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(sharp, device="cpu", threads=1)
    sentences = [(text, translator.tokens(text)) for text in ("w1 w2 w3", "w4 w5")]
    stopped = Stop()
    steps = count()
    monkeypatch.setattr(stopped, "is_set", lambda: next(steps) >= 3)
    with pytest.raises(StoppedError):
        translator.translate_tokens(sentences, stopped)
    assert next(steps) == 5  # it was asked before each of four steps, and in the end


def test_a_search_by_a_single_graph_is_stopped(sharp: Path) -> None:
    translator = Translator.load(sharp, device="cpu", threads=1)
    sentences = [("w1 w2 w3", translator.tokens("w1 w2 w3"))]
    stopped = Stop()
    options = RunOptions()
    with stopped.ending(options):
        assert not options.terminate
        stopped.set()
        assert options.terminate
    # A call that has not begun ends at once.
    with pytest.raises(StoppedError):
        translator.translate_tokens(sentences, stopped)
    (found,) = translator.translate_tokens(sentences, Stop())
    assert found.text == translator.translate(["w1 w2 w3"])[0].text


# ---- what a client does ----


FRAMINGS = {
    "both": b"HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "both, the other way": b"HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: Chunked\r\n",
    "chunks of HTTP/1.0": b"HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
    "two lengths": b"HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
    "two encodings": b"HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n",
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("path", [b"/translate", b"/nowhere"])
def test_two_ends_of_a_body_are_refused(
    server: ModelServer, framing: str, path: bytes
) -> None:
    """What follows may be a second request to a proxy, and is none to the server."""
    second = GET % (b"/health", b"")
    with server.connect() as connection:
        head = b"POST %s %sHost: 127.0.0.1\r\nContent-Type: application/json\r\n\r\n"
        connection.sendall(head % (path, FRAMINGS[framing]) + b"0\r\n\r\n" + second)
        answer = connection.makefile("rb").read()
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1") == 1


def test_more_connections_than_may_be_open_are_told(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(sharp, SEARCH, most_texts=2, most_waiting=2) as running:
        silent = [running.connect() for _ in range(4)]
        assert running.ask("/health").status == 503
        with running.connect() as one_more:
            answer = one_more.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"too many connections" in answer
        silent.pop().close()
        wait_for(lambda: running.ask("/health").status == 200)
        for connection in silent:
            connection.close()


@pytest.mark.parametrize(
    ("allowed", "most"), [(1024, 160), (RLIM_INFINITY, 160), (250, 100), (100, 0)]
)
def test_connections_leave_files_to_the_process(
    monkeypatch: pytest.MonkeyPatch, allowed: int, most: int
) -> None:
    server = pytest.importorskip("convs2s.serving.server")
    monkeypatch.setattr("resource.getrlimit", lambda _: (allowed, allowed))
    if not most:
        says(
            refusal(server.most_connections, 80),
            "`ulimit -n` is 100",
            "raise the limit",
        )
    elif most == 160:
        assert server.most_connections(80) == 160
    else:
        assert 0 < server.most_connections(80) < 250 - 32


def test_no_http_at_all(server: ModelServer) -> None:
    with server.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x00\xff\0\0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert server.ask("/health").status == 200


def test_a_slow_client_holds_up_nobody(server: ModelServer) -> None:
    with server.connect() as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n" + b'{"texts": ')
        assert server.translate("w1").status == 200
        answer = slow.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"not complete within 0.5 s" in answer


def test_large_requests_wait_for_each_other_and_small_ones_do_not(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.serving.application.LARGE_AT_ONCE", 1)
    large = b" " * 70_000 + b'{"texts": ["w1"]}'
    with (
        serving(sharp, SEARCH, request_seconds=2) as running,
        running.connect() as slow,
        ThreadPoolExecutor(2) as clients,
    ):
        slow.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        time.sleep(0.2)
        waiting = clients.submit(running.ask, "/translate", large)
        assert running.translate("w1").status == 200
        assert not waiting.done()
        assert slow.makefile("rb").read().startswith(b"HTTP/1.1 408")
        assert waiting.result().status == 200


GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"


def test_a_head_that_never_ends_keeps_no_connection(server: ModelServer) -> None:
    with (
        server.connect() as silent,
        server.connect() as slow,
        server.connect() as again,
    ):
        slow.sendall(HEAD)
        again.sendall(GET % (b"/health", b""))
        response = HTTPResponse(again)
        response.begin()
        assert json.loads(response.read())["status"] == "ok"
        again.sendall(HEAD)
        for connection in (silent, slow, again):
            connection.settimeout(10)
            assert connection.makefile("rb").read() == b""


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
def test_who_reads_no_answer_keeps_no_connection(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(
        "prometheus_client.generate_latest", lambda _: b"x" * 50_000_000
    )
    with server.connect() as deaf:
        deaf.sendall(GET % (b"/metrics", more))
        # A second until the connection closes, and half of one until it is cut.
        time.sleep(3)
        received = 0
        with suppress(ConnectionResetError):
            while part := deaf.recv(1 << 20):
                received += len(part)
    assert 0 < received < 50_000_000


def test_who_is_answered_before_the_body_keeps_no_connection(
    server: ModelServer,
) -> None:
    with server.connect() as slow:
        slow.sendall(GET % (b"/health", b"Content-Length: 100000\r\n"))
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):  # ten seconds, twenty times the limit
                slow.sendall(b"x")
                time.sleep(0.1)
            pytest.fail("the connection is still open")


def test_who_sends_nothing_more_gets_an_answer(server: ModelServer) -> None:
    with server.connect() as asking:
        asking.sendall(server.request(["w1 w2 w3"]))
        asking.shutdown(socket.SHUT_WR)
        response = HTTPResponse(asking)
        response.begin()
        (translation,) = json.loads(response.read())["translations"]
        assert asking.recv(1) == b""
    assert translation["source"] == "w1 w2 w3"


def test_who_closes_the_connection_is_forgotten(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        with server.connect() as leaving:
            leaving.sendall(server.request(["w1 w2 w3 w4 w5 w6 w7"] * 16))
    assert server.translate("w1").status == 200
    assert server.ask("/health").content["waiting"] == 0
    ended = Event()

    async def never_done(*_: object) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    monkeypatch.setattr("convs2s.serving.batches.Batches.translate", never_done)
    with server.connect() as leaving:
        leaving.sendall(server.request(["w1"]))
    assert ended.wait(60)


# ---- how it is started ----


def test_a_port_that_is_taken(sharp: Path, run: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(SystemExit, match=f"--port {port}: cannot listen there: "):
            run("serve", sharp, "--port", port)


@pytest.mark.parametrize(
    ("beam", "settings", "words"),
    [
        (12, {}, ["--beam 12", "--largest-beam 10"]),
        (3, {"most_waiting": 20}, ["--most-texts 64", "--most-waiting 20"]),
    ],
)
def test_what_no_request_could_have_is_refused_at_the_start(
    sharp: Path, beam: int, settings: dict[str, Any], words: list[str]
) -> None:
    starting = serving(sharp, DecodingSettings(beam=beam), **settings)
    says(refusal(starting.__enter__), *words)


@pytest.mark.parametrize(
    ("host", "is_this_machine"),
    [
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("localhost.example", False),
    ],
)
def test_which_addresses_are_this_machine_alone(
    host: str, is_this_machine: bool
) -> None:
    assert is_loopback(host) == is_this_machine
