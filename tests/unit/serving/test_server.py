"""The server as its clients see it: polite ones, many, slow ones, and those that are none."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from threading import Event

import pytest

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.errors import UserError
from convs2s.serving import connections
from convs2s.serving.server import listen
from convs2s.serving.settings import ServerSettings
from tests.support.processes import listening
from tests.support.served import JSON, ModelServer, serving
from tests.unit.conftest import Terminal

SEARCH = DecodingSettings(beam=3, minimum_length=2, batch_sentences=16)


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(sharp, SEARCH, request_seconds=0.5, most_waiting=80) as running:
        yield running


def test_it_translates_as_the_program_does(server: ModelServer, sharp: Path) -> None:
    answer = server.translate("w1 w2 w3", "", n_best=2, attention=True)
    assert answer.status == 200
    expected = Translator.load(sharp, device="cpu").translate(
        ["w1 w2 w3", ""], beam=3, minimum_length=2, n_best=2, attention=True
    )
    for found, one in zip(answer.content["translations"], expected, strict=True):
        assert one.attention is not None
        attention = found.pop("attention")
        assert attention["source"] == one.attention.source
        assert attention["weights"][0][0] == pytest.approx(
            one.attention.weights[0, 0], abs=1e-4
        )
        stated = one.as_json()
        assert {"line", *found} == set(stated)
        assert (found["text"], found["score"]) == (
            one.text,
            pytest.approx(one.score, abs=1e-5),
        )
        assert [best["text"] for best in found["n_best"]] == [
            best.text for best in one.n_best
        ]
    plain = server.translate("w1 w2 w3").content["translations"][0]
    assert "attention" not in plain


def test_fifty_at_once_get_what_each_asked(server: ModelServer) -> None:
    sentences = [f"w{number % 12} w{number % 5} w{number % 7}" for number in range(50)]
    alone = {
        one: server.translate(one).content["translations"][0]["text"]
        for one in sentences
    }
    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(server.translate, sentences))
    for sentence, answer in zip(sentences, answers, strict=True):
        (found,) = answer.content["translations"]
        assert (found["source"], found["text"]) == (sentence, alone[sentence])


def test_no_part_of_an_answer_waits_for_an_acknowledgment() -> None:
    with listen(ServerSettings(port=0)) as listening:
        with socket.create_connection(listening.getsockname()):
            connection = listening.accept()[0]
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_attention_of_a_model_without_any_is_the_clients_mistake(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "attends", False)
    with serving(sharp, SEARCH) as running:
        answer = running.translate("w1", attention=True)
    assert answer.status == 400
    assert answer.content["error"].startswith(
        "request: attention: no model of this server"
    )


def test_health(server: ModelServer) -> None:
    content = server.ask("/health").content
    assert (content["status"], content["waiting"]) == ("ok", 0)
    assert (content["model"]["source"], content["model"]["target"]) == ("en", "fr")
    assert content["bounds"]["most_waiting"] == 80


def test_more_than_may_wait_is_told_to_come_again(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.serving.requests.Batches.waiting", 60)
    answer = server.translate(*["w1"] * 21)
    assert answer.status == 503
    assert "60 sentences wait, and 80 is the most: ask again" in answer.content["error"]


def test_a_megabyte_of_text(server: ModelServer) -> None:
    answer = server.translate("w" * 1_000_000)
    assert answer.status == 413
    assert "more than 772,096 bytes" in answer.content["error"]
    answer = server.translate("w" * 3000)
    assert answer.status == 413
    assert "a text of 3,000 bytes, and 2,000 is the most" in answer.content["error"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "error"),
    [
        ("/translate", b'{"texts": ["\xff"]}', JSON, 400, "byte 0xff in position 12"),
        ("/translate", b"{", JSON, 400, "not JSON"),
        ("/translate", b"{}", {"Content-Type": "text/plain"}, 415, "application/json"),
        (
            "/translate",
            b"{}",
            {**JSON, "Host": "elsewhere.example"},
            421,
            "not a loopback address",
        ),
        ("/translate", b"{}", {**JSON, "Host": "[::1"}, 421, "not a loopback address"),
        ("/translate", None, {}, 405, "Method Not Allowed"),
        ("/nowhere", None, {}, 404, "Not Found"),
    ],
)
def test_a_bad_request_is_told_why(
    server: ModelServer,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    status: int,
    error: str,
) -> None:
    answer = server.ask(path, body, headers)
    assert answer.status == status
    assert error in answer.content["error"]


@pytest.mark.parametrize(
    "kind", ["application/json ; charset=utf-8", "Application/JSON"]
)
def test_a_content_type_in_any_spelling(server: ModelServer, kind: str) -> None:
    assert (
        server.ask("/translate", b'{"texts": []}', {"Content-Type": kind}).status == 200
    )


def test_no_http_at_all(server: ModelServer) -> None:
    with server.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x00\xff\0\0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert server.ask("/health").status == 200


HEAD = (
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)


def test_a_slow_client_holds_up_nobody(server: ModelServer) -> None:
    with server.connect() as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n" + b'{"texts": ')
        assert server.translate("w1").status == 200
        answer = slow.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"not complete within 0.5 s" in answer


def test_a_head_that_never_ends_keeps_no_connection(server: ModelServer) -> None:
    with (
        server.connect() as silent,
        server.connect() as slow,
        server.connect() as second,
    ):
        slow.sendall(HEAD)
        second.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        response = HTTPResponse(second)
        response.begin()
        assert json.loads(response.read())["status"] == "ok"
        second.sendall(HEAD)
        for connection in (silent, slow, second):
            connection.settimeout(10)
            assert connection.makefile("rb").read() == b""
    assert server.ask("/health").status == 200


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"])
def test_who_reads_no_answer_keeps_no_connection(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(
        "prometheus_client.generate_latest", lambda _: b"x" * 50_000_000
    )
    with server.connect() as deaf:
        deaf.sendall(f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode())
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
        slow.sendall(
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
        )
        for _ in range(100):  # ten seconds, twenty times the limit
            try:
                slow.sendall(b"x")
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the connection is still open")


def test_who_sends_nothing_more_gets_an_answer(server: ModelServer) -> None:
    body = json.dumps({"texts": ["w1 w2 w3"]}).encode()
    with server.connect() as asking:
        asking.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        asking.shutdown(socket.SHUT_WR)
        response = HTTPResponse(asking)
        response.begin()
        assert response.status == 200
        (translation,) = json.loads(response.read())["translations"]
        assert asking.recv(1) == b""
    assert translation["source"] == "w1 w2 w3"


def test_the_work_of_who_closes_the_connection_ends(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()

    async def never_done(*_: object) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    monkeypatch.setattr("convs2s.serving.requests.Batches.translate", never_done)
    body = json.dumps({"texts": ["w1"]}).encode()
    with server.connect() as leaving:
        leaving.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert ended.wait(60)


def test_who_closes_the_connection_is_forgotten(server: ModelServer) -> None:
    body = json.dumps({"texts": ["w1 w2 w3 w4 w5 w6 w7"] * 16}).encode()
    for _ in range(3):
        with server.connect() as leaving:
            leaving.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    with server.connect() as leaving:
        leaving.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert server.translate("w1").status == 200
    assert server.ask("/health").content["waiting"] == 0


def test_the_page_runs_what_it_holds_and_no_more(server: ModelServer) -> None:
    answer = server.ask("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert re.findall(rb"(?:src|href)=\"([^\"]*)", answer.body) == [b"data:,"]
    assert b"{{" not in answer.body


def start(model: Path, *options: str) -> tuple["subprocess.Popen[str]", str]:
    """Start the command; return its process and what it says when it answers."""
    pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")
    command = [
        sys.executable,
        "-m",
        "convs2s",
        "serve",
        str(model),
        "--port",
        "0",
        *options,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    return process, process.stderr.readline()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_answers_what_it_was_asked(
    sharp: Path, stop: signal.Signals
) -> None:
    process, said = start(
        sharp, "--threads", "1", "--device", "cpu", "--request-seconds", "1"
    )
    found = re.search(r"answers at http://127\.0\.0\.1:(\d+)/ until Ctrl-C", said)
    assert found, said
    server = ModelServer(int(found[1]))
    assert server.ask("/health").status == 200
    assert listening(process.pid) == (1, 0)
    with server.connect() as endless:
        endless.sendall(HEAD)
        assert endless.recv(1) == b""
    body = json.dumps({"texts": ["w1 w2 w3 w4 w5 w6 w7 w8"] * 64, "beam": 10}).encode()
    with server.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.2)  # until it has read that
        process.send_signal(stop)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200")
    _, rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "convs2s serve: stopped\n")


def test_work_that_the_stop_cuts_off_is_a_busy_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(*_: object) -> None:
        # As uvicorn does to every request, after stop_seconds.
        raise asyncio.CancelledError

    monkeypatch.setattr("convs2s.serving.requests.Batches.translate", cut_off)
    answer = server.translate("w1")
    assert (answer.status, answer.content["error"][:27]) == (
        503,
        "the server is shutting down",
    )


def test_a_port_that_is_taken(sharp: Path, run: Terminal) -> None:
    pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(
            SystemExit, match=rf"--port {port}: cannot listen there: Address"
        ):
            run("serve", sharp, "--port", port)


def test_without_its_extra_it_says_what_to_install(
    sharp: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "convs2s.serving.server", raising=False)
    with pytest.raises(SystemExit, match=r"pip install 'convs2s\[serve\]'"):
        run("serve", sharp)


def test_what_no_request_could_have_is_refused_at_the_start(sharp: Path) -> None:
    with (
        pytest.raises(UserError, match="--beam 12: --largest-beam is 10: raise that"),
        serving(sharp, DecodingSettings(beam=12)),
    ):
        pass
    with (
        pytest.raises(
            UserError, match="--most-texts 64: --most-waiting is 20: raise that"
        ),
        serving(sharp, SEARCH, most_waiting=20),
    ):
        pass


def test_every_setting_of_the_search_reaches_it(sharp: Path) -> None:
    """A longest output of two tokens, no end before them, and the words that the model has."""
    stated = DecodingSettings.model_validate(
        {"minimum_length": 2, "maximum_length": {"factor": 0.0, "offset": 2}, "beam": 2}
    )
    with serving(sharp, stated, most_texts=2) as running:
        (found,) = running.translate("w1 w2 w3 w4").content["translations"]
        assert len(found["tokens"]) == 2
        answer = running.translate("w1", "w2", "w3")
    assert (answer.status, answer.content["error"][:16]) == (413, "request: 3 texts")
