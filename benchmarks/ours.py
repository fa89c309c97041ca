"""This project does one work, in a process of its own, and says what it took.

    python benchmarks/ours.py generation --model FILE --lines FILE [--beam N] [--batch N] [--alone]
        [--output N] [--precision NAME] [--threads N]
    python benchmarks/ours.py training --case NAME --precision NAME [--updates N] [--threads N]
    python benchmarks/ours.py serving --model FILE --lines FILE [--clients N] [--seconds N]
        [--output N] [--threads N]
    python benchmarks/ours.py start --model FILE [--output N]
    python benchmarks/ours.py preparation|bpe --lines FILE [--codes FILE]
    python benchmarks/ours.py alignment --source FILE --target FILE

``generation`` translates the model's own tokens, through ``convs2s.Translator``. ``training`` makes
updates as ``convs2s train`` does. ``serving`` starts ``convs2s serve``, whose clients ask for one
sentence after the other on a kept connection; the processor time is the server's alone. ``start``
runs ``convs2s translate`` for one line. ``preparation`` normalizes and tokenizes English lines,
``bpe`` splits their words, ``alignment`` aligns words as fast_align does. Prints one JSON object
(sample.py). compare.py runs all of them.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from convs2s.pipeline.process import provide_environment
from sample import memory_of, sample

provide_environment()  # before torch is loaded: threads that wait give up their core

WARM_UP_UPDATES = 2
WARM_UP_SECONDS = 1.0
WARM_UP_LINES = 100


def main() -> None:
    """Do the work and print."""
    arguments = _arguments()
    WORKS[arguments.work](arguments)


def generation(arguments: argparse.Namespace) -> None:
    """Translate all lines."""
    from convs2s.api.translator import Translator

    translator = Translator.load(
        arguments.model,
        device="cpu",
        threads=arguments.threads,
        precision=arguments.precision,
        pretokenized=True,
    )
    lines = _lines(arguments)

    def translate(lines: Sequence[str]) -> int:
        for group in [[one] for one in lines] if arguments.alone else [lines]:
            found = translator.translate(
                group,
                beam=arguments.beam,
                minimum_length=arguments.output,
                maximum_length={"factor": 0.0, "offset": arguments.output},
                replace_unknown=False,
                batch_sentences=arguments.batch,
                batch_tokens=None,
            )
            assert {len(one.tokens) for one in found} == {arguments.output}
        return len(lines)

    translate(lines[: 1 + len(lines) // 8])
    sample(lambda: translate(lines))


def training(arguments: argparse.Namespace) -> None:
    """Make updates from the start of the first epoch; what is counted are target tokens."""
    import torch

    from convs2s.devices import keep_freed_memory
    from convs2s.models.kernels import matmul
    from convs2s.models.kernels.choice import fastest_kernel
    from training import Training
    from workloads import workload

    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        made = Training(workload(arguments.case, arguments.precision, Path(folder)))
        if arguments.precision == "fp32":
            matmul.use(fastest_kernel(made.products))
        made.make(WARM_UP_UPDATES)
        sample(lambda: made.make(arguments.updates)[0])


def serving(arguments: argparse.Namespace) -> None:
    """Let clients ask; ``wait_seconds`` is the median wait for an answer."""
    with server(arguments) as (process, port):
        asyncio.run(load(port, _lines(arguments), arguments.clients, WARM_UP_SECONDS))
        used = processor_seconds_of(process)
        waits = asyncio.run(
            load(port, _lines(arguments), arguments.clients, arguments.seconds)
        )
        used = processor_seconds_of(process) - used
        peak = memory_of(process, "VmHWM")
    figures = {
        "count": len(waits),
        "processor_seconds": used,
        "wall_seconds": arguments.seconds,
        "peak_bytes": peak,
        "wait_seconds": statistics.median(waits),
    }
    print(json.dumps(figures))


def start(arguments: argparse.Namespace) -> None:
    """Run ``convs2s translate`` for one line."""
    command = [
        sys.executable,
        "-m",
        "convs2s",
        "translate",
        str(arguments.model),
        "--quiet",
    ]
    command += _search(arguments)

    def run() -> int:
        subprocess.run(
            command, input="w1 w2 w3 .\n", text=True, check=True, capture_output=True
        )
        return 1

    run()
    sample(run)


def preparation(arguments: argparse.Namespace) -> None:
    """Normalize and tokenize all lines."""
    from convs2s.text.preparation import Preparation

    prepare = Preparation("moses_train", "en").prepare
    _each(prepare, arguments)


def bpe(arguments: argparse.Namespace) -> None:
    """Split all words into BPE tokens."""
    from convs2s.text.bpe import Bpe, read_codes

    _each(Bpe(read_codes(arguments.codes)).split, arguments)


def alignment(arguments: argparse.Namespace) -> None:
    """Align the words of all pairs in both directions, and join the links."""
    from convs2s.text.align import align_words

    with tempfile.TemporaryDirectory() as folder:
        sides = {"source": arguments.source, "target": arguments.target}
        sample(lambda: align_words(**sides, links=Path(folder) / "links", pairs=None))


WORKS = {
    work.__name__: work
    for work in (generation, training, serving, start, preparation, bpe, alignment)
}


def _each(work: Callable[[str], str], arguments: argparse.Namespace) -> None:
    lines = _lines(arguments)
    for line in lines[:WARM_UP_LINES]:
        work(line)
    sample(lambda: len([work(line) for line in lines]))


def _lines(arguments: argparse.Namespace) -> list[str]:
    from convs2s.files.text import read_lines

    return list(read_lines(arguments.lines))


def _search(arguments: argparse.Namespace) -> list[str]:
    """Return the options of a search whose outputs have all one length."""
    output, threads = str(arguments.output), str(arguments.threads)
    lengths = ["--minimum-length", output, "--maximum-length.offset", output]
    fixed = ["--maximum-length.factor", "0", "--no-replace-unknown", "--device", "cpu"]
    named = ["--beam", str(arguments.beam), "--precision", arguments.precision]
    return [*lengths, *fixed, *named, "--threads", threads]


@contextmanager
def server(arguments: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """Run ``convs2s serve`` and yield its process and its port."""
    command = [
        sys.executable,
        "-m",
        "convs2s",
        "serve",
        str(arguments.model),
        "--port",
        "0",
    ]
    command += ["--pretokenized", *_search(arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", said)):
            said = process.stderr.readline()
            assert said, "the server ended"
        yield process.pid, int(found[1])
    finally:
        process.terminate()
        process.wait()


def processor_seconds_of(process: int) -> float:
    """Return the processor time that another process has used."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(
    port: int, lines: Sequence[str], clients: int, seconds: float
) -> list[float]:
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


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: str
) -> None:
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
    parser = argparse.ArgumentParser(description="One work of this project.")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--codes", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--case", default="multi30k")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--alone", action="store_true", help="one sentence at a time")
    parser.add_argument(
        "--output", type=int, default=14, help="tokens of each translation"
    )
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
