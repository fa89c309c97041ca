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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from convs2s.api.translator import Translator
from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.decoding.translate import Translation
from convs2s.documents.html import read_html
from convs2s.model_file import load_model, save_model
from convs2s.serving.server import listen
from convs2s.serving.settings import ServerSettings
from tests.contract.pages import fenced
from tests.support.processes import listening
from tests.support.refusals import rows, says
from tests.support.served import FORM, JSON, ModelServer, serving

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
    texts = [FIRST, SECOND, LINE, ""]
    return Translator.load(sharp, device="cpu").translate(
        texts, beam=3, minimum_length=2, n_best=3, attention=True
    )


# ---- its own requests ----


def test_fifty_get_what_each_asked_at_once_and_in_one_request(
    server: ModelServer, sharp: Path
) -> None:
    texts = [f"w{number % 12} w{number % 5} " * (number % 4) for number in range(50)]
    translator = Translator.load(sharp, device="cpu")
    found = translator.translate(texts, beam=3, minimum_length=2)
    pairs = [(one.source, one.text) for one in found]
    with ThreadPoolExecutor(50) as clients:
        answers = [*clients.map(server.translate, texts), server.translate(*texts)]
    given = [one for answer in answers for one in answer.content["translations"]]
    assert [(one["source"], one["text"]) for one in given] == pairs * 2


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
        attention, shown = found.pop("attention"), one.attention
        assert shown is not None
        assert attention["source"] == shown.source
        first_row = pytest.approx(shown.weights[0, 0], abs=1e-4)
        assert attention["weights"][0][0] == first_row
        assert {"line", *found} == set(one.as_json())
        assert (found["source"], found["text"]) == (one.source, one.text)
        assert found["score"] == pytest.approx(one.score, abs=1e-5)
        listed = [best.text for best in one.n_best]
        assert [best["text"] for best in found["n_best"]] == listed
    (whole,) = server.translate(LINE, split_sentences=False).content["translations"]
    assert whole["text"] != expected[2].text
    assert "attention" not in whole


def test_every_setting_reaches_it(sharp: Path) -> None:
    """Outputs of two tokens for whole lines, and an origin that may ask."""
    stated = DecodingSettings(
        minimum_length=2, maximum_length=MaximumLength(factor=0.0, offset=2)
    )
    allowed = "https://page.example"
    asks = {"Origin": allowed, "Access-Control-Request-Method": "POST"}
    other = asks | {"Origin": "https://other.example"}
    with serving(sharp, stated, split_sentences=False, allow_origin=allowed) as running:
        (found,) = running.translate(LINE).content["translations"]
        preflight = running.ask("/translate", headers=asks, method="OPTIONS")
        answer = running.ask("/translate", b'{"texts": []}', JSON | {"Origin": allowed})
        refused = running.ask("/translate", headers=other, method="OPTIONS")
    assert len(found["tokens"]) == 2
    assert refused.status == 400
    for granted in (preflight, answer):
        assert granted.status == 200
        assert granted.headers["access-control-allow-origin"] == allowed


# ---- LibreTranslate's ----


DETECTED = {"confidence": 100.0, "language": "en"}
PARTS = {"Content-Type": 'Multipart/Form-Data; charset=utf-8; boundary="-- b"'}


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
    assert client.detect("Was nun?") == [DETECTED]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    assert client.translate(LINE, "en", "fr") == line
    text = f"{FIRST}\r\n\n{SECOND}\n"
    assert client.translate(text, "auto", "fr") == f"{one}\n\n{two}\n"


def test_several_texts_alternatives_and_html(
    server: ModelServer, expected: list[Translation]
) -> None:
    one, two, *_ = ([best.text for best in each.n_best] for each in expected)
    lines = f"{FIRST}\n{SECOND}"
    assert ask(server, q=lines, alternatives=1, source="auto", api_key="") == {
        "translatedText": f"{one[0]}\n{two[0]}",
        "alternatives": [f"{one[1]}\n{two[1]}"],
        "detectedLanguage": DETECTED,
    }
    assert ask(server, q=[FIRST, ""], alternatives=9, source="auto") == {
        "translatedText": [one[0], ""],
        "alternatives": [one[1:], []],
        "detectedLanguage": [DETECTED, DETECTED],
    }
    page = "<p class='a'>{}</p> <br/>\n{} <!-- W1 w2 w3. -->"
    given = [page.format(FIRST, SECOND), "<hr>"]
    assert ask(server, q=given, format="html", alternatives=1) == {
        "translatedText": [page.format(one[0], two[0]), "<hr>"],
        "alternatives": [[page.format(one[1], two[1])], []],
    }


# A text, and the same where each part that is translated is in capitals.
HTML = r"""
<p>One <b>two</b>.</p> => <p>ONE <b>TWO</b>.</p>
one => ONE
<br> => <br>
1 < 2, a <3 b && c => 1 &lt; 2, A &lt;3 B &amp;&amp; C
caf&eacute; &lt;b&gt; &amp; => CAF\xc9 &lt;B&gt; &amp;
<A HREF="a>b" title='c>d'>e</A> => <A HREF="a>b" title='c>d'>E</A>
<p>\n  one\n  two\t</p>\n => <p>\n  ONE\n  TWO\t</p>\n
&nbsp;one&#160; two => &#160;ONE&#160; TWO
<!-- one <b> -->two<!-- three => <!-- one <b> -->TWO<!-- three
<script>if (a < b) "</b>"</script>c<style>d => <script>if (a < b) "</b>"</script>C<style>d
<SCRIPT>a</script >b<scripts>c => <SCRIPT>a</script >B<scripts>C
<!DOCTYPE html><?xml a?>b</ c>d => <!DOCTYPE html><?xml a?>B</ c>D
a<b title="c>d => A<b title="c>d
a<b => A<b
"""


def test_what_of_html_is_translated() -> None:
    for page, translated in rows(HTML):
        found = read_html(page)
        assert found.translated(text.upper() for text in found.texts) == translated


def test_html_without_ends_is_read_in_linear_time() -> None:
    for part in ("<script>", "<style", "<a '\"", "<", "&"):
        started = time.process_time()
        read_html(part * 200_000)
        assert time.process_time() - started < 10, part


def test_forms(server: ModelServer, expected: list[Translation]) -> None:
    """As browsers and curl -F send them, with what they may add, and in the address."""
    text = """What stands before is ignored.
---- b\x20
content-disposition: form-data; name=q; filename="a.txt"
Content-Type: text/plain

W1 w2 w3.

--W4 w5 w6.
---- b
content-disposition: form-data; name=source

en
---- b
content-disposition: form-data; name=target

fr
---- b
content-disposition: form-data; name=alternatives

1
---- b--
and what stands after
"""
    form = text.replace("\n", "\r\n").encode()
    content = server.ask("/translate", form, PARTS).content
    assert content == ask(server, q=f"{FIRST}\r\n\r\n--{SECOND}", alternatives=1)
    assert server.ask("/detect", form, PARTS).content == [DETECTED]
    address = "/translate?q=W1+w2+w3.&source=en&target=fr"
    answer = server.ask(address, headers={}, method="POST")
    assert answer.content == {"translatedText": expected[0].text}


DOCUMENT = b"""---- b
Content-Disposition: form-data; name="file"; filename="a.HTML"
Content-Type: text/html

<p>W1 w2 w3.</p><p>W4 w5 w6.</p>
---- b
Content-Disposition: form-data; name="source"

en
---- b
Content-Disposition: form-data; name="target"

fr
---- b--
""".replace(b"\n", b"\r\n")


def test_a_document(
    server: ModelServer, expected: list[Translation], capsys: pytest.CaptureFixture[str]
) -> None:
    """By curl -F file=@a.html: the answer names an address, which is known to nobody else."""
    first, second = (
        server.ask("/translate_file", DOCUMENT, PARTS).content for _ in range(2)
    )
    assert first != second
    address = first["translatedFileUrl"]
    assert address.startswith(server.address)
    found = server.ask("/" + address.removeprefix(server.address))
    assert found.body.decode() == f"<p>{expected[0].text}</p><p>{expected[1].text}</p>"
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["content-disposition"].startswith("attachment")
    assert "in parts" not in capsys.readouterr().err
    server.ask("/translate_file", DOCUMENT.replace(b"</p>", b"<img> w1</p>", 1), PARTS)
    warning = "convs2s serve: a document: 1 paragraph or cell was translated in parts"
    assert warning in capsys.readouterr().err


def test_models_are_chosen_by_languages(sharp: Path, tmp_path: Path) -> None:
    """Of one server: English to French, German to French and German to English, of other words."""
    network, description = load_model(sharp)
    types = [f"{word}d" for word in description.source_types]
    for target in ("fr", "en"):
        languages = {"source": "de", "target": target}
        stated = {"source_types": types, "languages": languages}
        german = description.model_copy(update=stated)
        save_model(tmp_path / target, network.state_dict(), german)
    text = "w1d w2d w3d."
    with serving(sharp, SEARCH, tmp_path / "fr", tmp_path / "en") as running:
        listed = running.ask("/languages").content
        codes = [(one["code"], one["targets"]) for one in listed]
        assert codes == [("en", ["fr"]), ("de", ["fr", "en"]), ("fr", [])]
        found, *_ = running.ask("/detect", b'{"q": "w1d w2d w3d."}').content
        assert found["language"] == "de"
        assert found["confidence"] > 90
        assert running.translate(FIRST).status == 200
        for asked in ({}, {"source": "de"}, {"source": "auto", "target": "en"}):
            (answer,) = running.translate(text, **asked).content["translations"]
            assert answer["unknown_words"] == ["."]
        auto = ask(running, q=text, source="auto", target="fr")
        assert auto["detectedLanguage"]["language"] == "de"


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
        running.ask("/translate")
        running.ask("/translate", headers={"Host": "[::1"})
        running.ask("/download_file/a.txt", b"")
        running.ask("/nowhere")
        answer = running.ask("/metrics")
        health = running.ask("/health").content
        form = running.ask("/frontend/settings").content
    assert answer.headers["content-type"].startswith("text/plain; version=")
    said = answer.body.decode()
    says(
        said,
        'convs2s_requests_total{endpoint="/translate",status="200"} 1.0\n',
        'convs2s_requests_total{endpoint="/translate",status="405"} 2.0\n',
        'convs2s_requests_total{endpoint="/download_file/{name}",status="405"} 1.0\n',
        "convs2s_sentences_total 3.0\n",
        "convs2s_waiting 0.0\n",
        'convs2s_request_seconds_total{endpoint="/translate"}',
    )
    assert "/nowhere" not in said
    assert (health["status"], health["waiting"]) == ("ok", 0)
    (model,) = health["models"]
    assert (model["source"], model["target"]) == ("en", "fr")
    assert health["bounds"]["most_waiting"] == 80
    # What clients ask before they show a form.
    assert form["language"]["target"] == {"code": "fr", "name": "French"}
    assert form["charLimit"] == 2000
    assert {".html", ".docx"} < set(form["supportedFilesFormat"])


REQUESTS = """
{"texts": [], "beam": 10, "n_best": 2, "attention": true, "split_sentences": false}
{"texts": ["w1"], "baem": 1}
{"q": ["w1"], "source": "en", "target": "fr", "alternatives": 1, "api_key": ""}
{"q": "w1", "source": "en", "target": "fr", "format": "xml"}
{"q": "w1", "source": "en"}
"""


def test_the_description_is_of_what_is_taken(server: ModelServer) -> None:
    stated = server.ask("/openapi.json").content
    assert stated["openapi"] == "3.1.0"
    content = stated["paths"]["/translate"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    schema["components"] = stated["components"]
    validator = jsonschema.Draft202012Validator(schema)
    for request in REQUESTS.strip().splitlines():
        status = server.ask("/translate", request.encode()).status
        assert validator.is_valid(json.loads(request)) == (status == 200), request
    others = {"/translate": 400, "/translate_file": 400, "/download_file/{name}": 404}
    for path, methods in stated["paths"].items():
        for method in methods:
            body = None if method == "get" else b'{"q": "w1"}'
            assert server.ask(path, body).status == others.get(path, 200), path


# ---- the command ----

MOST_FILES = 150
OPTIONS = ("--port=0", "--threads=1", "--device=cpu", "--request-seconds=1")

STOPPED_AT_ONCE = """
import signal, sys
from convs2s.cli.main import main
from convs2s.serving.server import Server

*arguments, number = sys.argv[1:]
run = Server.run

def stopped(server, sockets):
    signal.raise_signal(int(number))
    run(server, sockets)

Server.run = stopped
main(arguments)
"""


def test_told_to_stop_before_it_runs_it_ends(sharp: Path) -> None:
    """It has printed its address by then, and uvicorn does not handle signals yet."""
    program = [sys.executable, "-c", STOPPED_AT_ONCE, "serve", str(sharp), *OPTIONS]
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        done = subprocess.run(
            [*program, f"{stop:d}"], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr.count("\n")) == (0, 2)
        assert done.stderr.endswith(" until Ctrl-C\nconvs2s serve: stopped\n")


def test_told_to_stop_it_answers_what_it_was_asked(sharp: Path) -> None:
    """Before that, more clients than it may open files do not disturb it."""
    serve = f"{sys.executable} -m convs2s serve {sharp} {' '.join(OPTIONS)}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"ulimit -n {MOST_FILES}; exec {serve}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"answers at http://127\.0\.0\.1:(\d+)/ until Ctrl-C", said)
    assert found, said
    server = ModelServer(int(found[1]))
    assert server.ask("/health").status == 200
    assert listening(process.pid) == [True]
    with ExitStack() as crowd:
        clients = [crowd.enter_context(server.connect()) for _ in range(2 * MOST_FILES)]
        answers = [client.recv(12) for client in clients]
    # The others were silent, and closed after --request-seconds.
    assert MOST_FILES < answers.count(b"HTTP/1.1 503") < 2 * MOST_FILES
    with server.connect() as connection:
        connection.sendall(server.request(["w1 w2 w3 w4 w5 w6 w7 w8"] * 64))
        time.sleep(0.2)  # until it has read that
        process.send_signal(signal.SIGINT)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200")
    _, rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "convs2s serve: stopped\n")
