"""How many requests at once does the server hold, beside batch decoding of the same sentences?

    python benchmarks/serve.py [--clients 50] [--seconds 60] [--threads N] [--beam 5]

fairseq's model of Multi30k English-German and the sentences of its test set, where the folder that
CONVS2S_SHARED names has them; else random weights of that shape, whose outputs have 14 tokens. Each
client asks for one sentence, and for the next one when it has the answer. Batch decoding is of the
same sentences at once, before and after, with as many threads. Prints, last, one JSON object:
sentences per second of both and their ratio, that of sentences per second of processor time, which
other work on the machine disturbs less, and how long an answer takes (p50, p95).
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np

from convs2s.api.translator import Translator
from convs2s.pipeline.process import provide_environment
from generation import WORKLOADS, Workload, apart
from machine import seconds_of

WARM_UP_SECONDS = 3.0
BATCH_LINES = 1000


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    provide_environment()  # as the command has it: threads that wait give up their core
    with tempfile.TemporaryDirectory() as folder:
        workload = WORKLOADS["multi30k"](Path(folder))
        before = apart(batch_rates, workload, arguments)
        with server(workload, arguments) as (process, port):
            asyncio.run(load(port, workload.lines, arguments.clients, WARM_UP_SECONDS))
            used = processor_seconds(process)
            waits = asyncio.run(
                load(port, workload.lines, arguments.clients, float(arguments.seconds))
            )
            used = processor_seconds(process) - used
        after = apart(batch_rates, workload, arguments)
    rate, batch = len(waits) / arguments.seconds, (before[0] + after[0]) / 2
    batch_processor = (before[1] + after[1]) / 2
    median, slow = np.percentile(waits, [50, 95])
    print(f"batch decoding: {before[0]:.1f} sentences/s before, {after[0]:.1f} after")
    print(f"a second of processor time: {len(waits) / used:.1f}, batch {batch_processor:.1f}")
    print(f"{arguments.clients} clients for {arguments.seconds} s: {rate:.1f} sentences/s")
    print(f"an answer takes {median:.3f} s (p50), {slow:.3f} s (p95)")
    figures = {
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "requests": len(waits),
        "served_per_second": round(rate, 1),
        "batch_per_second": round(batch, 1),
        "served_of_batch": round(rate / batch, 3),
        "served_of_batch_by_processor_time": round(len(waits) / used / batch_processor, 3),
        "p50_seconds": round(float(median), 3),
        "p95_seconds": round(float(slow), 3),
    }
    print(json.dumps(figures))


def batch_rates(workload: Workload, arguments: argparse.Namespace) -> tuple[float, float]:
    """Return the sentences per second of batch decoding, of wall time and of processor time."""
    translator = Translator.load(
        workload.model, device="cpu", threads=arguments.threads, pretokenized=True
    )
    lines = workload.lines[:BATCH_LINES]
    options = search_of(workload, arguments)

    def work() -> None:
        translator.translate(
            lines,
            beam=arguments.beam,
            minimum_length=int(options["minimum-length"]),
            maximum_length={"factor": 0.0, "offset": int(options["maximum-length.offset"])},
            replace_unknown=False,
        )

    translator.translate(lines[:64], beam=arguments.beam, replace_unknown=False)
    used = time.process_time()
    seconds = seconds_of(work)
    return len(lines) / seconds, len(lines) / (time.process_time() - used)


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def search_of(workload: Workload, arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of the search that the server and the batch share."""
    return {
        "beam": str(arguments.beam),
        "minimum-length": str(workload.lengths.least),
        "maximum-length.factor": "0",
        "maximum-length.offset": str(workload.lengths.most),
        "threads": str(arguments.threads),
    }


@contextmanager
def server(workload: Workload, arguments: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """Run ``convs2s serve`` and yield its process and its port."""
    options = [
        word
        for name, value in search_of(workload, arguments).items()
        for word in (f"--{name}", value)
    ]
    fixed = ["--port", "0", "--device", "cpu", "--pretokenized", "--no-replace-unknown"]
    command = [sys.executable, "-m", "convs2s", "serve", str(workload.model), *fixed, *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        assert found, said + process.stderr.read()
        yield process.pid, int(found[1])
    finally:
        process.terminate()
        process.wait()


async def load(port: int, lines: Sequence[str], clients: int, seconds: float) -> list[float]:
    """Return how long each answer took, of clients that ask one sentence after the other.

    Answers that come after the end do not count.
    """
    waits: list[float] = []
    texts, end = cycle(lines), time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            started = time.perf_counter()
            await _ask(reader, writer, next(texts))
            if time.perf_counter() < end:
                waits.append(time.perf_counter() - started)
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return waits


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: str) -> None:
    body = json.dumps({"texts": [text]}).encode()
    head = (
        "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answered = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").lower()
    assert answered.startswith("http/1.1 200"), answered
    length = re.search(r"content-length: (\d+)", answered)
    assert length
    await reader.readexactly(int(length[1]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Requests at once, beside batch decoding.")
    parser.add_argument("--clients", type=int, default=50, help="[50]")
    parser.add_argument("--seconds", type=int, default=60, help="[60]")
    parser.add_argument("--beam", type=int, default=5, help="[5]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the server")
    return parser.parse_args()


if __name__ == "__main__":
    main()
