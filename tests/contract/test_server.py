"""The server's answers: to its own requests, to LibreTranslate's clients, and about itself."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translation
from convs2s.serving.server import listen
from convs2s.serving.settings import ServerSettings
from tests.contract.pages import fenced
from tests.support.processes import listening
from tests.support.served import FORM, HEAD, JSON, ModelServer, serving

SEARCH = DecodingSettings(beam=3, minimum_length=2)
FIRST, SECOND = "W1 w2 w3.", "W4 w5 w6."
LINE = f"{FIRST} {SECOND}"


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(sharp, SEARCH, most_waiting=80) as running:
        yield running


@pytest.fixture(scope="module")
def expected(sharp: Path) -> list[Translation]:
    """The program's translations of the two sentences, of both in a line, and of nothing."""
    return Translator.load(sharp, device="cpu").translate(
        [FIRST, SECOND, LINE, ""],
        beam=3,
        minimum_length=2,
        n_best=3,
        attention=True,
        split_sentences=True,
    )


# ---- its own requests ----


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
    with listen(ServerSettings(port=0)) as listening_socket:
        with socket.create_connection(listening_socket.getsockname()):
            connection = listening_socket.accept()[0]
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_page_runs_what_it_holds_and_no_more(server: ModelServer) -> None:
    answer = server.ask("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert re.findall(rb"(?:src|href)=\"([^\"]*)", answer.body) == [b"data:,"]
    assert b"{{" not in answer.body


def test_it_translates_as_the_program_does(
    server: ModelServer, expected: list[Translation]
) -> None:
    answer = server.translate(FIRST, SECOND, LINE, "", n_best=3, attention=True)
    for found, one in zip(answer.content["translations"], expected, strict=True):
        assert one.attention is not None
        attention = found.pop("attention")
        assert attention["source"] == one.attention.source
        assert attention["weights"][0][0] == pytest.approx(
            one.attention.weights[0, 0], abs=1e-4
        )
        assert {"line", *found} == set(one.as_json())
        assert (found["source"], found["text"]) == (one.source, one.text)
        assert found["score"] == pytest.approx(one.score, abs=1e-5)
        texts = [best["text"] for best in found["n_best"]]
        assert texts == [best.text for best in one.n_best]
    (whole,) = server.translate(LINE, split_sentences=False).content["translations"]
    assert whole["text"] != expected[2].text
    assert "attention" not in whole


def test_every_setting_reaches_it(sharp: Path) -> None:
    """Outputs of two tokens for whole lines, and an origin that may ask."""
    stated = DecodingSettings.model_validate(
        {"minimum_length": 2, "maximum_length": {"factor": 0.0, "offset": 2}}
    )
    origin = "https://page.example"
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    with serving(sharp, stated, split_sentences=False, allow_origin=origin) as running:
        (found,) = running.translate(LINE).content["translations"]
        preflight = running.ask("/translate", None, asks, "OPTIONS")
        answer = running.ask("/translate", b'{"texts": []}', JSON | asks)
        asks["Origin"] = "https://other.example"
        other = running.ask("/translate", None, asks, "OPTIONS")
    assert len(found["tokens"]) == 2
    assert [preflight.status, answer.status, other.status] == [200, 200, 400]
    for granted in (preflight, answer):
        assert granted.headers["access-control-allow-origin"] == origin


# ---- LibreTranslate's ----


def ask(server: ModelServer, **stated: Any) -> Any:
    request = {"source": "en", "target": "fr", **stated}
    return server.ask("/translate", json.dumps(request).encode()).content


def test_libretranslates_own_client(
    server: ModelServer, expected: list[Translation]
) -> None:
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(
        server.address, "a key"
    )
    one, two, line, _ = (translation.text for translation in expected)
    assert client.languages() == [{"code": "en", "name": "en", "targets": ["fr"]}]
    assert client.translate(LINE, "en", "fr") == line
    text = f"{FIRST}\r\n\n{SECOND}\n"
    assert client.translate(text, "auto", "fr") == f"{one}\n\n{two}\n"


def test_several_texts_and_alternatives(
    server: ModelServer, expected: list[Translation]
) -> None:
    one, two, *_ = ([best.text for best in each.n_best] for each in expected)
    lines = f"{FIRST}\n{SECOND}"
    both = f"{one[0]}\n{two[0]}"
    assert ask(server, q=[FIRST, "", lines]) == {"translatedText": [one[0], "", both]}
    assert ask(server, q=lines, alternatives=1, format="text", api_key="") == {
        "translatedText": both,
        "alternatives": [f"{one[1]}\n{two[1]}"],
    }
    found = ask(server, q=[FIRST, ""], alternatives=9)
    assert found == {"translatedText": [one[0], ""], "alternatives": [one[1:], []]}
    assert ask(server, q=[]) == {"translatedText": []}


def test_a_form_may_stand_in_the_address(
    server: ModelServer, expected: list[Translation]
) -> None:
    form = urlencode({"q": FIRST, "source": "en", "target": "fr"})
    answer = server.ask(f"/translate?{form}", None, {}, "POST")
    assert answer.content == {"translatedText": expected[0].text}


def test_what_the_page_says_runs(
    server: ModelServer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = root / "docs/serving.md"
    (program,) = fenced(page, "python")
    exec(program.replace("http://127.0.0.1:8000/", server.address), {})
    printed = capsys.readouterr().out.rstrip("\n")
    (command,) = re.findall(
        r"^    curl .*/translate -d (.*)$", page.read_text("utf-8"), re.MULTILINE
    )
    body = "&".join(part for part in shlex.split(command) if part != "-d").encode()
    assert server.ask("/translate", body, FORM).content == {"translatedText": printed}


# ---- about itself ----


def test_health_and_metrics(sharp: Path) -> None:
    with serving(sharp, SEARCH, most_waiting=80) as running:
        running.translate(LINE, "w1")
        running.ask("/translate", b"{")
        for headers in ({}, {"Host": "[::1"}):
            assert running.ask("/translate", None, headers).status == 405
        assert running.ask("/nowhere").status == 404
        answer = running.ask("/metrics")
        health = running.ask("/health").content
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.body.decode().splitlines()
    for line in (
        'requests_total{endpoint="/translate",status="200"} 1.0',
        'requests_total{endpoint="/translate",status="400"} 1.0',
        'requests_total{endpoint="/translate",status="405"} 2.0',
        "sentences_total 3.0",
        "waiting 0.0",
    ):
        assert f"convs2s_{line}" in lines
    assert b"/nowhere" not in answer.body
    assert b'convs2s_request_seconds_total{endpoint="/translate"}' in answer.body
    assert (health["status"], health["waiting"]) == ("ok", 0)
    assert (health["model"]["source"], health["model"]["target"]) == ("en", "fr")
    assert health["bounds"]["most_waiting"] == 80


REQUESTS: tuple[dict[str, Any], ...] = (
    {"texts": [], "beam": 10, "n_best": 2, "attention": True, "split_sentences": False},
    {"texts": ["w1"], "baem": 1},
    {"q": ["w1"], "source": "en", "target": "fr", "alternatives": 1, "api_key": ""},
    {"q": "w1", "source": "en", "target": "fr", "format": "html"},
    {"q": "w1", "source": "en"},
)


def test_the_description_is_of_what_is_taken(server: ModelServer) -> None:
    stated = server.ask("/openapi.json").content
    assert stated["openapi"] == "3.1.0"
    content = stated["paths"]["/translate"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    components = {"components": stated["components"]}
    validator = jsonschema.Draft202012Validator(schema | components)
    for request in REQUESTS:
        status = server.ask("/translate", json.dumps(request).encode()).status
        assert validator.is_valid(request) == (status == 200), request
    for path in stated["paths"].keys() - {"/translate"}:
        assert server.ask(path).status == 200


# ---- the command ----


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_answers_what_it_was_asked(
    sharp: Path, stop: signal.Signals
) -> None:
    pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")
    options = "--port 0 --threads 1 --device cpu --request-seconds 1"
    command = [sys.executable, "-m", "convs2s", "serve", str(sharp), *options.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"answers at http://127\.0\.0\.1:(\d+)/ until Ctrl-C", said)
    assert found, said
    server = ModelServer(int(found[1]))
    assert server.ask("/health").status == 200
    assert listening(process.pid) == (1, 0)
    with server.connect() as endless:
        endless.sendall(HEAD)
        assert endless.recv(1) == b""
    with server.connect() as connection:
        connection.sendall(server.request(["w1 w2 w3 w4 w5 w6 w7 w8"] * 64))
        time.sleep(0.2)  # until it has read that
        process.send_signal(stop)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200")
    _, rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "convs2s serve: stopped\n")
