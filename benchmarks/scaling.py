"""What more processes gain, and what longer sentences and wider beams cost.

    python benchmarks/scaling.py [processes|lengths|beams ...] [--most N] [--quick]

``processes``: generation by 1, 2, 4 processes and so on up to ``--most`` [all cores], each with one
thread, with the efficiency: the rate by N beside N times that by one, whose fall on a machine with
fewer free cores than N is no fault of the program. ``lengths``: beam 5, sources and outputs of 10
to 200 tokens; ``beams``: 1 to 20, sentences of 20 tokens. Both print milliseconds of processor time
for each step of a sentence, and by how much the memory grew: linear and flat is what they should
be. Random weights of fairseq's Multi30k shape. Last comes one JSON object. For trainings there is
workers.py.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from convs2s.pipeline.process import provide_environment

provide_environment()  # before torch is loaded

import torch  # noqa: E402

from convs2s.config.decoding import DecodingSettings, MaximumLength  # noqa: E402
from convs2s.decoding.parallel import translate_chunks  # noqa: E402
from convs2s.decoding.streams import ChunkTranslator  # noqa: E402
from convs2s.decoding.translate import LineTranslator  # noqa: E402
from convs2s.manifest import processor  # noqa: E402
from machine import median_seconds  # noqa: E402
from random_model import write_random_model  # noqa: E402
from sample import memory_of  # noqa: E402
from workloads import random_lines, workload  # noqa: E402

TYPES = 5_000
LENGTHS, BEAMS = (10, 25, 50, 100, 200), (1, 2, 5, 10, 20)
BEAM, LENGTH = 5, 20
SENTENCES = 16
"""Of a measurement by length or beam, all in one batch."""

SHARE = 128
"""Sentences of each of the most processes."""

Figures = dict[str, Any]


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    counts = [
        2**power
        for power in range(arguments.most.bit_length())
        if 2**power <= arguments.most
    ]
    figures: Figures = {"processor": processor(), "cores": os.cpu_count()}
    print(f"{processor()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        shape = "tiny" if arguments.quick else "multi30k"
        write_random_model(
            path, workload(shape, "fp32", Path(folder)).architecture, TYPES
        )
        parts: dict[str, Callable[[], Figures]] = {
            "processes": lambda: _processes(path, counts, arguments.quick),
            "lengths": lambda: _costs(
                path, [(one, BEAM) for one in LENGTHS], arguments.quick
            ),
            "beams": lambda: _costs(
                path, [(LENGTH, one) for one in BEAMS], arguments.quick
            ),
        }
        for part in arguments.parts or parts:
            print(f"\n{part}", flush=True)
            figures[part] = parts[part]()
    print(json.dumps(figures))


def _settings(beam: int, length: int) -> DecodingSettings:
    return DecodingSettings(
        beam=beam,
        minimum_length=length,
        maximum_length=MaximumLength(factor=0.0, offset=length),
        replace_unknown=False,
        batch_sentences=SENTENCES,
        batch_tokens=None,
    )


def _processes(path: Path, counts: Sequence[int], quick: bool) -> Figures:
    """Return the sentences a second of each number of processes."""
    torch.set_num_threads(1)  # a process that forks must not have computed with several
    translator = LineTranslator(
        [path], _settings(BEAM, LENGTH), "cpu", pretokenized=True
    )
    translate = ChunkTranslator(translator, False, None)
    share = SENTENCES if quick else SHARE
    lines = list(enumerate(random_lines(share * counts[-1], LENGTH), start=1))
    chunks = [
        lines[start : start + SENTENCES] for start in range(0, len(lines), SENTENCES)
    ]
    rates = {}
    for count in counts:

        def work(count: int = count) -> None:
            for _ in translate_chunks(translate, chunks, workers=count):
                pass

        rates[count] = len(lines) / median_seconds(work, 1 if quick else 5)
    return _efficiency(rates)


def _efficiency(rates: dict[int, float]) -> Figures:
    figures = {}
    for count, rate in rates.items():
        share = rate / count / rates[1]
        print(
            f"  {count:3} processes: {rate:10,.1f} sentences/s, efficiency {share:.0%}",
            flush=True,
        )
        figures[str(count)] = {
            "per_second": round(rate, 1),
            "efficiency": round(share, 3),
        }
    return figures


def _costs(path: Path, cases: Sequence[tuple[int, int]], quick: bool) -> Figures:
    """Return the cost of each length and beam, each measured in a process of its own."""
    figures = {}
    for length, beam in cases[:2] if quick else cases:
        with get_context("spawn").Pool(1) as pool:
            seconds, grown = pool.apply(_cost, (path, length, beam))
        milliseconds = 1000 * seconds / SENTENCES / length
        print(
            f"  {length:3} tokens, beam {beam:2}: {milliseconds:7.2f} ms a step and sentence, "
            f"{grown / 2**20:6.0f} MiB more",
            flush=True,
        )
        name = f"length {length}, beam {beam}"
        figures[name] = {"ms": round(milliseconds, 3), "mib": round(grown / 2**20)}
    return figures


def _cost(path: Path, length: int, beam: int) -> tuple[float, int]:
    """Return the processor time of a batch, and the bytes that the peak of memory grew by."""
    torch.set_num_threads(1)
    translator = LineTranslator(
        [path], _settings(beam, length), "cpu", pretokenized=True
    )
    lines = random_lines(SENTENCES, length)
    before = memory_of("self", "VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    started = time.process_time()
    for _ in translator.translate(lines):
        pass
    return time.process_time() - started, memory_of("self", "VmHWM") - before


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Scaling.")
    parts = ("processes", "lengths", "beams")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)} [all]"
    )
    parser.add_argument(
        "--most", type=int, default=os.cpu_count(), help="processes [all cores]"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tiny network, little of it"
    )
    found = parser.parse_args()
    if unknown := set(found.parts) - set(parts):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return found


if __name__ == "__main__":
    main()
