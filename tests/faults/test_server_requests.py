"""Requests and clients that the server refuses: bad ones, too large ones, slow ones, deaf ones."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from itertools import count
from pathlib import Path
from resource import RLIM_INFINITY
from threading import Event

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
from convs2s.serving.server import most_connections
from convs2s.serving.settings import ServerSettings, is_loopback
from tests.conftest import Terminal
from tests.support.processes import wait_for
from tests.support.refusals import refusal, refuses, rows, says
from tests.support.served import HEAD, Answer, ModelServer, serving

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

REQUESTS = r"""
/translate => { => not JSON in UTF-8 ... Expecting property name
/translate => {"texts": ["\xff"]} => not JSON in UTF-8 ... byte 0xff in position 12
/translate => [] => expected a JSON object
/translate => {"texts": "w1"} => texts: expected a list
/translate => {"texts": ["w1"], "baem": 1} => 'baem' ... did you mean 'beam'
/translate => {"texts": ["w1"], "beam": 7} => beam: expected at most 6
/translate => {"texts": ["w1"], "beam": 2, "n_best": 3} => n_best: a beam of 2
/translate => {"texts": ["w1", "w\\ud800"]} => texts:2: not Unicode
/translate => {"texts": ["w1"], "target": "en"} => 'auto' to 'en' is not supported
/translate => {"q": "w1", "source": "de", "target": "fr"} => 'de' ... expected en to fr
/translate => {"q": "w1", "source": "en", "target": "es"} => 'es' ... expected en to fr
/translate => {"source": "en", "target": "fr"} => key 'q' is missing
/translate => {"q": "", "source": "en", "target": "fr", "format": "xml"} => 'text' or 'html'
/translate => {"q": "", "source": "en", "target": "fr", "alternatives": -1} => alternatives: ... 0
/translate => q=\xff => not a form in UTF-8
/translate => q=w1&q=w2&source=en&target=fr => 'q' is there twice
/detect => {} => key 'q' is missing
/detect => --b\r\nNAME="q"\r\n\r\nw1 => then --b--
/detect => --b\r\nNAME="q"\r\n\r\n\xff\r\n--b-- => not a form in UTF-8
/detect => --b\r\nNAME="q"\r\n\r\n\r\n--b\r\nNAME="q"\r\n\r\n\r\n--b-- => 'q' is there twice
/detect => --b\r\n\r\n\r\n--b-- => name
/translate_file => {"file": "a"} => expected a form with a document
/translate_file => --b\r\nNAME="file"\r\n\r\nw1\r\n--b-- => filename
/translate_file => --b\r\nNAME="file"; filename="a.md"\r\n\r\nw1\r\n--b-- => name ends in
/translate_file => --b\r\nNAME="file"; filename="a.docx"\r\n\r\nw1\r\n--b-- => a.docx
/translate_file => --b\r\nNAME="file"; filename="a.txt"\r\n\r\nw\xff\r\n--b-- => a.txt
"""


def post(server: ModelServer, path: str, body: bytes) -> Answer:
    """Send JSON, a form, or a form in parts, as which the body begins."""
    kind = "application/x-www-form-urlencoded"
    if body.startswith((b"{", b"[")):
        kind = "application/json"
    if b"--b" in body:
        kind = "multipart/form-data; boundary=b"
    return server.ask(path, body, {"Content-Type": kind})


def assert_refused(answer: Answer, status: int, *words: str) -> None:
    """Fail the test unless a request is refused with this status and these words."""
    assert answer.status == status, answer.body
    says(answer.content["error"], *words)


def test_a_bad_request_or_one_of_too_many_parts_is_told_why(
    server: ModelServer,
) -> None:
    for path, body, words in rows(REQUESTS):
        body = body.replace("NAME", "Content-Disposition: form-data; name")
        answer = post(server, path, body.encode("latin-1"))
        assert_refused(answer, 400, words)
    for parts, words in (
        (b"[" * 100_000, "maximum recursion"),
        (b"q=1&" * 101, "not a form"),
        (b"\r\n--b" * 102 + b"--", "expected up to 100 parts"),
        (b"--b\r\n" + b"x" * 2000 + b"\r\n\r\n\r\n--b--", "longer than 1024"),
    ):
        assert_refused(post(server, "/translate", parts), 400, words)


def test_a_request_or_a_document_of_more_than_is_allowed(server: ModelServer) -> None:
    for texts, words in (
        (["w1"] * 65, "65 texts, but at most 64 are allowed"),
        (["é" * 201], "402 bytes, but at most 400 are allowed"),
        (["W1. W2. W3."] * 30, "90 sentences, but at most 80 are allowed"),
        (["w" * 200_000], "more than 157,696 bytes"),
        (["w1", "w2 " * 64], "sentence of 64 tokens, but at most 63 are allowed"),
        (["w1 " * 60] * 12, "more than 2,000: send fewer sentences"),
    ):
        assert_refused(server.translate(*texts), 413, "request: ", words)
    for name, content, words in (
        ("a.txt", b"w1 " * 20_000, "more than 54,096 bytes"),
        ("a.html", (b"<p>" + b"w" * 20_000) * 2, "40,000 bytes of text"),
        ("a.html", b"<p>w1" * 81, "81 texts, but at most 80"),
        ("a.txt", b"W1. " * 81, "81 sentences, but at most 80"),
    ):
        head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"'
        body = head.encode() + b"\r\n\r\n" + content + b"\r\n--b--"
        assert_refused(post(server, "/translate_file", body), 413, "request: ", words)


# A form is taken from programs alone, not from any page.
HEADS = r"""
POST /translate => Content-Type: text/plain => 415
POST /translate => => 415
POST /translate => Content-Type: application/json\nHost: elsewhere.example => 421
POST /translate => Content-Type: application/json\nHost: [::1 => 421
POST /translate?q=w1 => Origin: null => 415
POST /translate => Content-Type: application/x-www-form-urlencoded\nOrigin: null => 415
POST /detect => Content-Type: multipart/form-data; boundary=b\nSec-Fetch-Site: none => 415
POST /detect => Content-Type: multipart/form-data => 400
GET /translate => => 405
OPTIONS /translate => Origin: http://a.example\nAccess-Control-Request-Method: POST => 405
GET /nowhere => => 404
GET /download_file/a.txt => => 404
"""


def test_a_request_is_refused_by_its_head(server: ModelServer) -> None:
    for asked, headers, status in rows(HEADS):
        method, path = asked.split()
        stated = dict(header.split(": ") for header in headers.splitlines())
        answer = server.ask(path, None, stated, method)
        assert answer.status == int(status), (asked, headers)
        assert answer.content["error"]


def test_of_a_thousand_wrong_texts_one_is_reported() -> None:
    """The report of each took milliseconds for a thousand, and seconds for a full request."""
    for section, key in ((OwnRequest, "texts"), (LibreTranslateRequest, "q")):
        with pytest.raises(ValidationError) as caught:
            section.model_validate({key: [1] * 1000})
        assert caught.value.error_count() < 5


def test_the_message_about_a_large_text_takes_no_time() -> None:
    """A message shows no password, and the search for one took a minute."""
    started = time.process_time()
    for text in ("://" + "a:" * 370_000, ":/" * 370_000, "://@" + ":/a:" * 180_000):
        for wrong in ({"texts": text}, {text: 1}):
            said = refusal(check_request, wrong, ServerSettings(), SEARCH, Models([]))
            assert len(said) < 2000
    assert time.process_time() - started < 5


def test_attention_that_is_too_large_or_that_the_model_has_not(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a weight for each pair of tokens, in each of the best hypotheses."""
    answer = server.translate("w" * 283, attention=True, n_best=2)
    assert_refused(answer, 413, "request: attention: too much text")
    monkeypatch.setattr(Translator, "attends", False)
    answer = server.translate("w1", attention=True)
    assert_refused(answer, 400, "request: attention: the model of these languages")


# ---- what ends a translation ----


def test_a_translation_that_takes_too_long_is_stopped(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()

    def translate_for_ever(
        _: object, __: object, stopped: Event, **___: object
    ) -> None:
        stopped.wait(100)
        ended.set()
        raise StoppedError

    monkeypatch.setattr(Translator, "translate_tokens", translate_for_ever)
    with serving(sharp, SEARCH, answer_seconds=0.5) as running:
        answer = running.translate("w1")
        assert_refused(answer, 503, "request: not translated within 0.5 s")
        assert ended.wait(60)


def test_a_search_is_stopped_between_its_steps(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(sharp, device="cpu", threads=1)
    sentences = [(text, translator.tokens(text)) for text in ("w1 w2 w3", "w4 w5")]
    stopped = Stop()
    options = RunOptions()
    with stopped.ending(options):  # of the single graph that searches for one sentence
        assert not options.terminate
        stopped.set()
        assert options.terminate
    with pytest.raises(StoppedError):
        translator.translate_tokens(sentences[:1], stopped)
    stopped = Stop()
    steps = count()
    monkeypatch.setattr(stopped, "is_set", lambda: next(steps) >= 3)
    with pytest.raises(StoppedError):
        translator.translate_tokens(sentences, stopped)
    assert next(steps) == 5  # it was asked before each of four steps, and in the end


# ---- what a client does ----


GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"


TWO_ENDS = r"""
HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5
HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: Chunked
HTTP/1.0\r\nTransfer-Encoding: chunked
HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6
HTTP/1.1\r\nTransfer-Encoding: gzip, chunked
"""


def test_two_ends_of_a_body_are_refused(server: ModelServer) -> None:
    """What follows may be a second request to a proxy, and is none to the server."""
    for (head,) in rows(TWO_ENDS):
        asked = f"POST /nowhere {head}\r\nHost: 127.0.0.1\r\n\r\n0\r\n\r\n"
        with server.connect() as connection:
            connection.sendall(asked.encode() + GET % (b"/health", b""))
            answer = connection.makefile("rb").read()
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
        assert b"connection: close" in answer.lower()
        assert answer.count(b"HTTP/1.1") == 1


def test_more_connections_than_may_be_open_are_told(sharp: Path) -> None:
    with serving(sharp, SEARCH, most_texts=2, most_waiting=2) as running:
        silent = [running.connect() for _ in range(4)]
        answer = running.ask("/health")
        assert answer.status == 503
        assert b"too many connections" in answer.body
        silent.pop().close()
        wait_for(lambda: running.ask("/health").status == 200)
        for connection in silent:
            connection.close()


def test_connections_leave_files_to_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def allow(files: int) -> None:
        monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))

    for files in (1024, RLIM_INFINITY):
        allow(files)
        assert most_connections(80) == 160
    allow(250)
    assert 0 < most_connections(80) < 250 - 32
    allow(100)
    refuses("`ulimit -n` is 100 ... raise the limit", most_connections, 80)


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
        answer = slow.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"not complete within 2 s" in answer
        assert waiting.result().status == 200


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


def test_what_no_request_could_have_is_refused_at_the_start(sharp: Path) -> None:
    wide = serving(sharp, DecodingSettings(beam=12))
    refuses("--beam 12 ... --largest-beam 10", wide.__enter__)
    few = serving(sharp, SEARCH, most_waiting=20)
    refuses("--most-texts 64 ... --most-waiting 20", few.__enter__)


def test_which_addresses_are_this_machine_alone() -> None:
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("localhost.example")
