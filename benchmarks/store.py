"""How fast does a store of tens of millions of pairs start, and what memory does it take?

Makes a synthetic store with the sentence lengths of real text, opens it in a process of its own,
plans an epoch and collates its batches. Prints each step's figures and, last, one JSON object: the
seconds until the store is open and until the first batch is there (opening included), and the
process's anonymous memory beyond its imports: its peak until the first batch, what is held then,
and the share by which the peak of the following batches exceeds that. The store is removed at the
end. Seconds include whatever else the machine does; ``first_batch_processor_seconds`` do not.

    python benchmarks/store.py --folder FOLDER_WITH_8_GB
"""

import argparse
import json
import multiprocessing
import re
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from convs2s.config.model import BatchLimits
from convs2s.data.batches import collate, plan_batches
from convs2s.data.store import ROWS_PER_BATCH, SIDES, TokenStore
from convs2s.data.vocabulary import END

SENTENCES = (
    *(
        0,
        0,
        15,
        37,
        37,
        46,
        83,
        112,
        130,
        159,
        187,
        168,
        184,
        197,
        191,
        198,
        211,
        225,
        215,
        224,
    ),
    *(
        207,
        212,
        195,
        187,
        165,
        166,
        170,
        163,
        126,
        126,
        120,
        121,
        106,
        99,
        111,
        91,
        69,
        83,
        72,
        60,
    ),
    *(47, 72, 48, 32, 44, 45, 41, 37, 34, 31, 34, 23, 31, 21, 16, 18, 14, 11, 8, 14),
    *(11, 14, 5, 10, 7, 7, 2, 3, 3, 5, 2, 3, 2, 5, 5, 3, 1, 4, 2, 3),
    *(2, 3, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3),
)
"""English sentences of 0, 1, ... words, ``</s>`` counted; the last entry counts 100 and more.

Source: newstest2012 and newstest2013 of WMT (6003 sentences), words of the Moses tokenizer.
"""

RATIOS = (
    *(0.80, 0.89, 0.94, 1.00, 1.00, 1.00, 1.05, 1.06, 1.08, 1.10),
    *(1.12, 1.14, 1.17, 1.19, 1.22, 1.25, 1.29, 1.33, 1.41, 1.60),
)
"""French words per English word: the quantiles 2.5%, 7.5%, ... 97.5% over the same sentences."""

LIMITS = BatchLimits(sentences=64, tokens=None, micro_batch_tokens=4000)
"""The paper's (section 4.2), the defaults of a model."""

BATCHES = 1000
WORD = END + 1
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Step:
    """A step of the measured process.

    Attributes:
        seconds: since the imports.
        processor_seconds: since the imports, of this process alone.
        memory: anonymous memory at its end, in bytes.
        peak: most anonymous memory during it, in bytes.
    """

    seconds: float
    processor_seconds: float
    memory: int
    peak: int


def main() -> None:
    """Make the store, measure, print."""
    parser = argparse.ArgumentParser(
        description="Time and memory of a large token store."
    )
    parser.add_argument(
        "--pairs", type=int, default=36_000_000, help="default: %(default)s"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the store is made for a while"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "train.arrow"
        write_synthetic(path, arguments.pairs)
        size = path.stat().st_size
        print(f"{arguments.pairs} pairs, {size / MEBIBYTE:.0f} MiB", flush=True)
        steps = watch(path)
    for name, step in steps.items():
        print(f"{name}: {step.seconds:.2f} s, {step.memory / MEBIBYTE:.1f} MiB")
    imports, first, batches = steps["imports"], steps["first batch"], steps["batches"]
    held = first.memory - imports.memory
    peak = max(steps["open"].peak, first.peak) - imports.memory
    figures = {
        "pairs": arguments.pairs,
        "open_seconds": round(steps["open"].seconds, 3),
        "first_batch_seconds": round(first.seconds, 2),
        "first_batch_processor_seconds": round(first.processor_seconds, 2),
        "peak_mebibytes": round(peak / MEBIBYTE, 1),
        "held_mebibytes": round(held / MEBIBYTE, 1),
        "batches": BATCHES,
        "batches_seconds": round(batches.seconds - first.seconds, 2),
        "growth": round((batches.peak - first.memory) / held, 4),
    }
    print(json.dumps(figures))


def write_synthetic(path: Path, pairs: int) -> None:
    """Write a store of one repeated word, as ``write_store`` lays it out but from arrays."""
    generator = np.random.default_rng(0)
    shares = np.array(SENTENCES) / sum(SENTENCES)
    schema = pa.schema([(side, pa.list_(pa.int32())) for side in SIDES])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for start in range(0, pairs, ROWS_PER_BATCH):
            rows = min(ROWS_PER_BATCH, pairs - start)
            source = generator.choice(len(shares), rows, p=shares)
            target = np.rint(source * generator.choice(RATIOS, rows)).astype(np.int64)
            columns = [repeated(source), repeated(target)]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def repeated(lengths: npt.NDArray[np.int64]) -> pa.ListArray:
    """Return a row of words that ends in ``</s>`` for each length."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.full(offsets[-1], WORD, np.int32)
    values[offsets[1:] - 1] = END
    return pa.ListArray.from_arrays(offsets, values)


def watch(path: Path) -> dict[str, Step]:
    """Run ``start_epoch`` in a process of its own and sample its memory from outside."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=start_epoch, args=(path, sender))
    process.start()
    sender.close()  # so that the end of the process ends the waiting for it
    steps: dict[str, Step] = {}
    for name in ("imports", "open", "first batch", "batches"):
        peak = 0
        while not receiver.poll(0.005):
            peak = max(peak, anonymous_memory(str(process.pid)))
        seconds, processor_seconds, memory = receiver.recv()
        steps[name] = Step(seconds, processor_seconds, memory, max(peak, memory))
    process.join()
    return steps


def start_epoch(path: Path, connection: Connection) -> None:
    """Open the store, plan an epoch, collate its batches; send time and memory of each step."""
    started, processor_started = time.monotonic(), time.process_time()

    def report() -> None:
        seconds, used = (
            time.monotonic() - started,
            time.process_time() - processor_started,
        )
        connection.send((seconds, used, anonymous_memory("self")))

    report()
    store = TokenStore(path)
    report()
    lengths = store.lengths("source"), store.lengths("target")
    plan = plan_batches(*lengths, LIMITS, np.random.default_rng([1, 1]))
    del lengths
    collate(store, plan[0])
    report()
    for rows in plan[1 : BATCHES + 1]:
        collate(store, rows)
    report()


def anonymous_memory(process: str) -> int:
    """Return a process's RssAnon in bytes: what it holds in memory that no file backs."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    found = re.search(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main()
