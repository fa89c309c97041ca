"""Honest clients of a server, each answered in time and rightly, while others do harm.

A tenth of the requests is hostile. Request N is the same each time.
"""

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import psutil
import torch

from convs2s.api.translator import Translator
from convs2s.config.load import load
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network
from convs2s.text.bpe import join
from tests.faults.campaign.samples import ROOT
from tests.support.golden import golden_lines
from tests.support.trained import TRAINED, import_trained

REQUESTS = 10_000
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

Client = Callable[["Connection", random.Random], Coroutine[None, None, None]]


@dataclass
class Connection:
    """A connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(
        self,
        body: bytes,
        kind: str = "application/json",
        path: str = "/translate",
        more: str = "",
    ) -> None:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        head += f"{more}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of the next answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        assert length, head
        return int(head.split()[1]), await self.reader.readexactly(int(length[1]))


# ---- hostile clients ----


def _asking(
    body: bytes, patience: float = 60.0, kind: str = "application/json"
) -> Client:
    """Return a client that sends a body and waits a while for the answer, which is a refusal."""

    async def client(connection: Connection, _: random.Random) -> None:
        await connection.send(body, kind)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                status, answer = await connection.answer()
                assert status != 500, answer

    return client


def _sending(*parts: bytes) -> Client:
    """Return a client that sends parts with pauses between, and leaves without an answer."""

    async def client(connection: Connection, draw: random.Random) -> None:
        for part in parts:
            connection.writer.write(part)
            await asyncio.sleep(draw.uniform(0, 0.5))

    return client


async def _crowd(connection: Connection, draw: random.Random) -> None:
    """Open many connections, which ask nothing."""
    place = connection.writer.get_extra_info("peername")
    writers = []
    for _ in range(40):
        _, writer = await asyncio.open_connection(*place)
        writers.append(writer)
    await asyncio.sleep(draw.uniform(0, 0.5))
    for writer in writers:
        writer.close()


def _texts(*texts: str, **wanted: object) -> bytes:
    return json.dumps({"texts": texts, **wanted}).encode()


LONG = " ".join(f"the man number {number} sees" for number in range(60))
WORK = _texts(*[LONG[:450]] * 64, beam=10)
"""Of 89,600 tokens times the beam, and a server takes 100,000."""
HEAD = (
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)
PARTS = "multipart/form-data; boundary=b"
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
    "html": _asking(
        json.dumps(
            {"q": '<a "<!--' * 80_000, "source": "en", "target": "fr", "format": "html"}
        ).encode()
    ),
    "slow head": _sending(HEAD, b"A: b\r\n", b"C: d\r\n"),
    "slow body": _sending(HEAD + b"Content-Length: 700000\r\n\r\n", b"{" * 9, b"{"),
    "no HTTP": _sending(b"\x16\x03\x01\x00\xff\0\0\r\n\r\n", b"\0" * 100_000),
    "deaf": _sending(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500),
}
"""What hostile clients do, by name."""


# ---- the server ----


def write_demo_model(path: Path) -> None:
    """Write a model of the demo's size, with random weights and tokens of real text."""
    with tempfile.TemporaryDirectory() as folder:
        _, description = load_model(import_trained(Path(folder)))
    architecture = load(ROOT).model("demo").architecture
    torch.manual_seed(1)
    network = build_network(architecture, *description.sizes)
    described = description.model_copy(update={"architecture": architecture})
    save_model(path, network.state_dict(), described)


@contextmanager
def _server(model: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server and yield its process and its port; its messages go to a file."""
    command = [sys.executable, "-m", "convs2s", "serve", str(model), "--port", "0"]
    command += ["--device", "cpu", "--threads", "2"]
    command += ["--stop-seconds", str(STOP_SECONDS)]
    said = folder / "server.log"
    with said.open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            while not (
                found := re.search(r"http://\S+:(\d+)/", said.read_text("utf-8"))
            ):
                assert process.poll() is None, said.read_text("utf-8")
                time.sleep(0.1)
            yield process, int(found[1])
        finally:
            process.kill()


@dataclass
class Trial:
    """What became of the requests."""

    port: int
    process: subprocess.Popen[bytes]
    expected: dict[str, str]
    """Honest sentence -> its translation by the program."""
    seconds: float
    """In which an honest client has its answer."""
    waits: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    """After each fifth of the requests, in bytes."""
    faults: list[str] = field(default_factory=list)

    async def run(self, requests: int) -> None:
        """Send so many requests, ``AT_ONCE`` at a time."""
        numbers = iter(range(requests))

        async def client() -> None:
            for number in numbers:
                await self._request(number)
                if number % max(1, requests // 5) == 0:
                    self.memory.append(
                        psutil.Process(self.process.pid).memory_info().rss
                    )

        await asyncio.gather(*(client() for _ in range(AT_ONCE)))

    async def _request(self, number: int) -> None:
        draw = random.Random(f"request {number}")
        names = list(CLIENTS)
        name = names[number // HOSTILE % len(names)] if number % HOSTILE == 0 else ""
        started = time.monotonic()
        streams = await asyncio.open_connection("127.0.0.1", self.port)
        connection = Connection(*streams)
        try:
            if name:
                # The server may close the connection of a hostile client at any time.
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await CLIENTS[name](connection, draw)
                return
            async with asyncio.timeout(10 * self.seconds):
                await self._ask(connection, draw)
            if number < WARM_UP:
                return
            self.waits.append(time.monotonic() - started)
            if self.waits[-1] > self.seconds:
                self.faults.append(f"{number}: answered after {self.waits[-1]:.2f} s")
        except Exception as error:
            self.faults.append(f"{number} {name}: {error!r:.300}")
        finally:
            connection.writer.transport.abort()

    async def _ask(self, connection: Connection, draw: random.Random) -> None:
        """Ask as an honest client does, and compare the answer."""
        texts = draw.sample(sorted(self.expected), draw.choice((1, 1, 1, 3, 8)))
        expected = [self.expected[text] for text in texts]
        if draw.random() < 0.3:
            form = {"q": texts[0], "source": "en", "target": "fr"}
            body = urlencode(form).encode()
            await connection.send(body, "application/x-www-form-urlencoded")
            status, answer = await connection.answer()
            assert (status, json.loads(answer)) == (
                200,
                {"translatedText": expected[0]},
            )
            return
        await connection.send(_texts(*texts, split_sentences=False))
        status, answer = await connection.answer()
        assert status == 200, answer
        found = [one["text"] for one in json.loads(answer)["translations"]]
        assert found == expected

    async def stop(self) -> float:
        """Return how long the server takes to end while it has much to do."""
        writers = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            await Connection(reader, writer).send(WORK)
            writers.append(writer)
        await asyncio.sleep(0.3)
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait)
        taken = time.monotonic() - started
        for writer in writers:
            writer.close()
        return taken


def run(requests: int, seconds: float) -> tuple[list[str], str]:
    """Send so many requests; return what was wrong, and a summary.

    An honest client has its answer in ``seconds``.
    """
    with tempfile.TemporaryDirectory(prefix="convs2s-clients-") as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        write_demo_model(model)
        lines = [join(line) for line in golden_lines(TRAINED, "test200.bpe.en")[:50]]
        translations = Translator.load(model, device="cpu").translate(lines)
        expected = {
            line: found.text for line, found in zip(lines, translations, strict=True)
        }
        with _server(model, folder) as (process, port):
            trial = Trial(port, process, expected, seconds)
            asyncio.run(trial.run(requests))
            taken = asyncio.run(trial.stop())
        said = (folder / "server.log").read_text("utf-8")
    faults = trial.faults
    if "Traceback" in said:
        faults.append(f"a traceback: {said[said.index('Traceback') :][:2000]}")
    if taken > STOP_SECONDS + max(1.0, seconds - MOST_SECONDS):
        faults.append(f"stopped after {taken:.1f} s")
    growth = trial.memory[-1] - trial.memory[min(1, len(trial.memory) - 1)]
    if growth > MOST_GROWTH:
        faults.append(f"grew by {growth >> 20} MiB: {trial.memory}")
    waits = sorted(trial.waits) or [0.0]
    return faults, (
        f"clients: {requests} requests, honest ones answered: half within "
        f"{waits[len(waits) // 2]:.3f} s, 99% within {waits[len(waits) * 99 // 100]:.3f} s, all "
        f"within {waits[-1]:.3f} s; memory {trial.memory[-1] >> 20} MiB, grew by {growth >> 20}; "
        f"stopped in {taken:.1f} s; {len(faults)} faults"
    )


def main() -> None:
    """Send the requests; exit with 1 where one found a fault."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS
    faults, summary = run(requests, MOST_SECONDS)
    print(*faults[:50], summary, sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
