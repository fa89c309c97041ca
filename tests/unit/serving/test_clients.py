"""What other programs ask: LibreTranslate's clients, Prometheus, pages of other origins."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import jsonschema
import pytest
from pydantic import ValidationError

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translation
from convs2s.serving.settings import ServerSettings
from tests.support.served import JSON, Answer, ModelServer, serving

SEARCH = DecodingSettings(beam=3, minimum_length=2)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FIRST, SECOND = "W1 w2 w3.", "W4 w5 w6."


@pytest.fixture(scope="module")
def server(sharp: Path) -> Iterator[ModelServer]:
    with serving(sharp, SEARCH, most_waiting=80, longest_text=400) as running:
        yield running


@pytest.fixture(scope="module")
def expected(sharp: Path) -> list[Translation]:
    translator = Translator.load(sharp, device="cpu")
    return translator.translate([FIRST, SECOND], beam=3, minimum_length=2, n_best=3)


def ask(server: ModelServer, **stated: Any) -> Answer:
    return server.ask(
        "/translate", json.dumps({"source": "en", "target": "fr", **stated}).encode()
    )


def test_the_sentences_of_a_line_are_translated_each(
    server: ModelServer, expected: list[Translation]
) -> None:
    line = f"{FIRST} {SECOND}"
    joined, whole = (
        server.translate(line, **wanted).content["translations"][0]
        for wanted in ({"attention": True}, {"split_sentences": False})
    )
    assert joined["text"] == " ".join(one.text for one in expected)
    assert joined["source"] == whole["source"] == line
    assert len(joined["attention"]["weights"][0]) == len(joined["tokens"]) + 2
    assert whole["text"] != joined["text"]
    answer = server.translate(*["W1. W2. W3."] * 30)
    assert answer.status == 413
    assert "90 sentences, and 80 is the most" in answer.content["error"]


def test_a_server_may_leave_lines_whole(sharp: Path) -> None:
    line = f"{FIRST} {SECOND}"
    with serving(sharp, SEARCH, split_sentences=False) as running:
        (found,) = running.translate(line).content["translations"]
    (whole,) = Translator.load(sharp, device="cpu").translate(
        [line], beam=3, minimum_length=2
    )
    assert found["text"] == whole.text


def test_libretranslates_own_client(
    server: ModelServer, expected: list[Translation]
) -> None:
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(
        server.address, "a key"
    )
    one, two = (translation.text for translation in expected)
    assert client.languages() == [{"code": "en", "name": "en", "targets": ["fr"]}]
    assert client.translate(f"{FIRST} {SECOND}", "en", "fr") == f"{one} {two}"
    assert (
        client.translate(f"{FIRST}\r\n\n{SECOND}\n", "auto", "fr")
        == f"{one}\n\n{two}\n"
    )
    with pytest.raises(HTTPError) as refused:
        client.translate(FIRST, "en", "es")
    error = json.loads(refused.value.read())["error"]
    assert (refused.value.code, error) == (400, "'es' is not supported: expected 'fr'")
    with pytest.raises(HTTPError, match="404"):
        client.detect(FIRST)


def test_what_the_page_says_runs(
    server: ModelServer, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs/serving.md").read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(program.replace("http://127.0.0.1:8000/", server.address), {})
    printed = capsys.readouterr().out.rstrip("\n")
    (command,) = re.findall(r"^    curl .*/translate -d (.*)$", page, re.MULTILINE)
    body = "&".join(part for part in shlex.split(command) if part != "-d").encode()
    assert server.ask("/translate", body, FORM).content == {"translatedText": printed}


def test_several_texts_and_alternatives(
    server: ModelServer, expected: list[Translation]
) -> None:
    one, two = ([best.text for best in translation.n_best] for translation in expected)
    lines = f"{FIRST}\n{SECOND}"
    assert ask(server, q=[FIRST, "", lines]).content == {
        "translatedText": [one[0], "", f"{one[0]}\n{two[0]}"]
    }
    assert ask(server, q=lines, alternatives=1, format="text", api_key="").content == {
        "translatedText": f"{one[0]}\n{two[0]}",
        "alternatives": [f"{one[1]}\n{two[1]}"],
    }
    found = ask(server, q=[FIRST, ""], alternatives=9).content
    assert found == {"translatedText": [one[0], ""], "alternatives": [one[1:], []]}
    assert ask(server, q=[]).content == {"translatedText": []}


@pytest.mark.parametrize(
    ("stated", "status", "error"),
    [
        ({"q": "w1", "source": "de"}, 400, "'de' is not supported: expected 'en'"),
        ({"q": "w1", "source": "\ud800"}, 400, r"'\ud800' is not supported"),
        (
            {"q": "w1", "format": "html"},
            400,
            "request: format: expected 'text', not 'html'",
        ),
        ({"q": "w1", "alternatives": -1}, 400, "alternatives: expected at least 0"),
        ({"q": 1}, 400, "request: q: "),
        ({}, 400, "request: key 'q' is missing"),
        ({"q": "w\0"}, 400, "holds the character NUL"),
        ({"q": "w" * 401}, 413, "a text of 401 bytes, and 400 is the most"),
        ({"q": ["w1"] * 65}, 413, "65 texts, and 64 is the most"),
        ({"q": "w1\n" * 64}, 413, "65 texts, and 64 is the most"),
    ],
)
def test_what_it_has_not_is_refused(
    server: ModelServer, stated: dict[str, Any], status: int, error: str
) -> None:
    answer = ask(server, **stated)
    assert answer.status == status
    assert error in answer.content["error"]


def test_a_form_is_taken_from_programs_alone(server: ModelServer) -> None:
    body = urlencode(
        {"q": "w1", "source": "en", "target": "fr", "alternatives": 1}
    ).encode()
    assert len(server.ask("/translate", body, FORM).content["alternatives"]) == 1
    for header in ({"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert server.ask("/translate", body, {**FORM, **header}).status == 415
    raw = "q=é&source=en&target=fr".encode()
    assert server.ask("/translate", raw, FORM).status == 200
    for bad in (b"q=%ff", b"q=\xff", b"q=1&" * 101):
        answer = server.ask("/translate", bad, FORM)
        assert answer.status == 400
        assert answer.content["error"].startswith("request: not a form in UTF-8: ")
    answer = server.ask("/translate", b"q=w1&q=w2&source=en&target=fr", FORM)
    assert answer.status == 400
    assert answer.content["error"].startswith(
        "request: 'q' is stated twice: send several texts"
    )


def test_a_form_may_stand_in_the_address(
    server: ModelServer, expected: list[Translation]
) -> None:
    path = "/translate?" + urlencode({"q": FIRST, "source": "en", "target": "fr"})
    for body, headers in ((None, {}), (b"", FORM)):
        answer = server.ask(path, body, headers, "POST")
        assert answer.content == {"translatedText": expected[0].text}
    assert server.ask(path, None, {"Origin": "null"}, "POST").status == 415
    assert server.ask("/translate", b"{}", {}).status == 415


def test_metrics(sharp: Path) -> None:
    with serving(sharp, SEARCH) as running:
        running.translate(f"{FIRST} {SECOND}", "w1")
        running.ask("/translate", b"{")
        for headers in ({}, {"Host": "[::1"}):
            assert running.ask("/translate", None, headers).status == 405
        assert running.ask("/nowhere").status == 404
        answer = running.ask("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.body.decode().splitlines()
    for line in (
        'convs2s_requests_total{endpoint="/translate",status="200"} 1.0',
        'convs2s_requests_total{endpoint="/translate",status="400"} 1.0',
        'convs2s_requests_total{endpoint="/translate",status="405"} 2.0',
        "convs2s_sentences_total 3.0",
        "convs2s_waiting 0.0",
    ):
        assert line in lines
    assert b"/nowhere" not in answer.body
    assert any(
        line.startswith('convs2s_request_seconds_total{endpoint="/translate"}')
        for line in lines
    )


def test_the_description_is_of_what_is_taken(server: ModelServer) -> None:
    stated = server.ask("/openapi.json").content
    assert stated["openapi"] == "3.1.0"
    content = stated["paths"]["/translate"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"] | {
        "components": stated["components"]
    }
    validator = jsonschema.Draft202012Validator(schema)
    for request in (
        {"texts": ["w1"]},
        {
            "texts": [],
            "beam": 10,
            "n_best": 2,
            "attention": True,
            "split_sentences": False,
        },
        {"texts": ["w1"], "beam": 0},
        {"texts": ["w1"], "baem": 1},
        {"q": "w1", "source": "en", "target": "fr"},
        {"q": ["w1"], "source": "en", "target": "fr", "alternatives": 1, "api_key": ""},
        {"q": "w1", "source": "en", "target": "fr", "format": "html"},
        {"q": "w1", "source": "en"},
    ):
        status = server.ask("/translate", json.dumps(request).encode()).status
        assert validator.is_valid(request) == (status == 200), request
    for path in stated["paths"].keys() - {"/translate"}:
        assert server.ask(path).status == 200


def test_pages_of_other_origins_need_an_option(
    server: ModelServer, sharp: Path
) -> None:
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    page = {"Origin": "https://page.example", **JSON}
    granted = "access-control-allow-origin"
    assert server.ask("/translate", None, {**page, **asks}, "OPTIONS").status == 405
    assert granted not in server.ask("/health", None, page).headers
    with serving(sharp, SEARCH, allow_origin="https://page.example") as running:
        answer = running.ask("/translate", None, {**page, **asks}, "OPTIONS")
        assert (answer.status, answer.headers[granted]) == (200, "https://page.example")
        answer = running.ask("/translate", b'{"texts": ["w1"]}', page)
        assert (answer.status, answer.headers[granted]) == (200, "https://page.example")
        other = {**page, **asks, "Origin": "https://other.example"}
        assert running.ask("/translate", None, other, "OPTIONS").status == 400
        assert running.ask("/health", None, {"Host": "page.example"}).status == 421
    assert ServerSettings().allow_origin == ""
    for no_origin in ("https://page.example/", "page.example"):
        with pytest.raises(ValidationError, match="allow_origin"):
            ServerSettings(allow_origin=no_origin)
