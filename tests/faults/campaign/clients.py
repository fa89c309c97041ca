"""Honest clients of a server, each answered in time and rightly, while others do harm.

A tenth of the requests is hostile. Request N is the same each time.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlencode

import psutil

from convs2s.api.translator import Translator
from convs2s.text.bpe import join
from tests.support.golden import TRAINED, golden_lines, import_trained
from tests.support.served import FORM, HEAD, ModelServer

HOSTILE = 10
"""One of so many requests is hostile."""

WARM_UP = 100
"""Number of first requests whose answers may take ten times as long.

The server builds graphs, and loads torch for attention, when they are first needed.
"""

AT_ONCE = 24
"""Number of clients, each of which sends one request after the other."""

MOST_SECONDS = 2.0
"""In which an honest client has its answer."""

STOP_SECONDS = 2
MOST_GROWTH = 64 << 20
"""By which the server's memory may grow from the first fifth of the requests to the last."""

Client = Callable[[ModelServer, random.Random], None]


def _asking(
    body: bytes, patience: float = 60.0, kind: str = "application/json"
) -> Client:
    """Return a client that sends a body and waits a while for the answer, which is a refusal."""

    def client(server: ModelServer, _: random.Random) -> None:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=patience)
        with suppress(TimeoutError):
            connection.request("POST", "/translate", body, {"Content-Type": kind})
            answer = connection.getresponse()
            assert answer.status != 500, answer.read()
        connection.close()

    return client


def _sending(*parts: bytes) -> Client:
    """Return a client that sends parts with pauses between, and leaves without an answer."""

    def client(server: ModelServer, draw: random.Random) -> None:
        with server.connect() as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(draw.uniform(0, 0.5))

    return client


def _crowd(server: ModelServer, draw: random.Random) -> None:
    """Open many connections, which ask nothing."""
    crowd = [server.connect() for _ in range(40)]
    time.sleep(draw.uniform(0, 0.5))
    for connection in crowd:
        connection.close()


def _texts(*texts: str, **wanted: object) -> bytes:
    return json.dumps({"texts": texts, **wanted}).encode()


LONG = " ".join(f"the man number {number} sees" for number in range(60))
WORK = _texts(*[LONG[:450]] * 64, beam=10)
"""Of 89,600 tokens times the beam, and a server takes 100,000."""
PARTS = "multipart/form-data; boundary=b"
HTML = {"q": '<a "<!--' * 80_000, "source": "en", "target": "fr", "format": "html"}
CLIENTS: dict[str, Client] = {
    # Most of this work is for nobody.
    "work": _asking(WORK, 1.0),
    "dense": _asking(_texts(*[". " * 1000] * 64, beam=10)),
    "wrong items": _asking(b'{"texts": [' + b"1," * 350_000 + b"1]}"),
    "two ends": _sending(
        HEAD
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + HEAD
    ),
    "crowd": _crowd,
    "leaves": _sending(HEAD + b"Content-Length: 20\r\n\r\n" + _texts("the man")),
    "attention": _asking(_texts(LONG[:900], attention=True, beam=10), 1.0),
    "work at beam 1": _asking(_texts(*[LONG[:1500]] * 64, beam=1), 1.0),
    "quotes": _asking(_texts(*["'" * 2000] * 64)),
    "lists": _asking(b'{"q": [' + b"[]," * 250_000 + b"[]]}"),
    "deep": _asking(b"[" * 700_000),
    "password": _asking(b'{"texts": "://' + b"a:" * 300_000 + b'"}'),
    "key": _asking(b'{"' + b"://a:" * 140_000 + b'": 1}'),
    "number": _asking(b'{"texts": [], "beam": ' + b"1" * 700_000 + b"}"),
    "too much": _asking(b" " * 2_000_000),
    "parts": _asking((b"--b\r\n" + b"a" * 5000 + b"\r\n") * 130, kind=PARTS),
    "part": _asking(b"--b\r\nContent-Disposition: " + b';"' * 300_000, kind=PARTS),
    "html": _asking(json.dumps(HTML).encode()),
    "slow head": _sending(HEAD, b"A: b\r\n", b"C: d\r\n"),
    "slow body": _sending(HEAD + b"Content-Length: 700000\r\n\r\n", b"{" * 9, b"{"),
    "no HTTP": _sending(b"\x16\x03\x01\x00\xff\0\0\r\n\r\n", b"\0" * 100_000),
    "deaf": _sending(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500),
}
"""What hostile clients do, by name."""


def _ask(server: ModelServer, expected: dict[str, str], draw: random.Random) -> None:
    """Ask as an honest client does, and compare the answer."""
    texts = draw.sample(sorted(expected), draw.choice((1, 1, 1, 3, 8)))
    if draw.random() < 0.3:
        form = urlencode({"q": texts[0], "source": "en", "target": "fr"}).encode()
        answer = server.ask("/translate", form, FORM)
        assert answer.status == 200, answer
        assert answer.content == {"translatedText": expected[texts[0]]}
    else:
        answer = server.translate(*texts, split_sentences=False)
        assert answer.status == 200, answer
        found = [one["text"] for one in answer.content["translations"]]
        assert found == [expected[text] for text in texts]


def _send(
    number: int, server: ModelServer, expected: dict[str, str], seconds: float
) -> tuple[float, str]:
    """Send a request; return how long an honest client waited, and what was wrong."""
    draw = random.Random(f"request {number}")
    started = time.monotonic()
    try:
        if number % HOSTILE == 0:
            client = [*CLIENTS.values()][number // HOSTILE % len(CLIENTS)]
            # The server may close the connection of a hostile client at any time.
            with suppress(ConnectionError, HTTPException):
                client(server, draw)
            return 0.0, ""
        _ask(server, expected, draw)
    except Exception as error:
        return 0.0, f"{number}: {error!r:.300}"
    wait = time.monotonic() - started
    if number < WARM_UP:
        wait /= 10
    return wait, f"{number}: answered after {wait:.2f} s" if wait > seconds else ""


@contextmanager
def _server(model: Path, said: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server and yield its process and its port; its messages go to a file."""
    stated = f"--port 0 --device cpu --threads 2 --stop-seconds {STOP_SECONDS}"
    command = [sys.executable, "-m", "convs2s", "serve", str(model), *stated.split()]
    with said.open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            while not (found := re.search(r"http://\S+:(\d+)/", said.read_text())):
                assert process.poll() is None, said.read_text()
                time.sleep(0.1)
            yield process, int(found[1])
        finally:
            process.kill()


def _stop(server: ModelServer, process: subprocess.Popen[bytes]) -> float:
    """Return how long the server takes to end while it has much to do."""
    busy = [server.connect() for _ in range(4)]
    for connection in busy:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(WORK) + WORK)
    time.sleep(0.3)
    started = time.monotonic()
    process.terminate()
    process.wait()
    taken = time.monotonic() - started
    for connection in busy:
        connection.close()
    return taken


def run(requests: int, seconds: float = MOST_SECONDS) -> Counter[str]:
    """Send so many requests; print what was wrong, and count it.

    An honest client has its answer in ``seconds``.
    """
    faults = []
    waits = []
    memory = []
    with tempfile.TemporaryDirectory(prefix="convs2s-clients-") as name:
        model = import_trained(Path(name))
        lines = [join(line) for line in golden_lines(TRAINED, "test200.bpe.en")[:50]]
        translations = Translator.load(model, device="cpu").translate(lines)
        texts = (found.text for found in translations)
        expected = dict(zip(lines, texts, strict=True))
        log = model.with_name("server.log")
        with (
            _server(model, log) as (process, port),
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            server = ModelServer(port)
            send = partial(_send, server=server, expected=expected, seconds=seconds)
            for number, (wait, fault) in enumerate(pool.map(send, range(requests))):
                waits.append(wait)
                faults += [fault] if fault else []
                if number % max(1, requests // 5) == 0:
                    memory.append(psutil.Process(process.pid).memory_info().rss)
            stopped = _stop(server, process)
        said = log.read_text("utf-8")
    if "Traceback" in said:
        faults.append(f"a traceback: {said[said.index('Traceback') :][:2000]}")
    if stopped > STOP_SECONDS + max(1.0, seconds - MOST_SECONDS):
        faults.append(f"stopped after {stopped:.1f} s")
    growth = memory[-1] - memory[:2][-1]
    if growth > MOST_GROWTH:
        faults.append(f"grew by {growth >> 20} MiB: {memory}")
    waits.sort()
    half, most = (waits[len(waits) * percent // 100] for percent in (50, 99))
    print(*faults[:50], sep="\n")
    print(
        f"clients: {requests} requests, honest ones answered: half within {half:.3f} s, "
        f"99% within {most:.3f} s, all within {waits[-1]:.3f} s; memory {memory[-1] >> 20} MiB, "
        f"grew by {growth >> 20}; stopped in {stopped:.1f} s; {len(faults)} faults"
    )
    return Counter(faults=len(faults))
