"""How fast are training and translation on a GPU, and are they right there?

    PYTHONPATH=src python benchmarks/gpu.py --output gpu.json --write-docs

In this order, each figure printed and the file written as soon as it is there: the golden vectors
computed on the device; the rates of its matrix products (bf16, and float32 by TF32); updates of the
two WMT architectures in bf16 and of one in fp32, with their share of that rate and the peak of the
memory; table 3's workload (6003 sentences, batches of 128) by random weights at beams 1 and 5, and
some of its sentences one at a time, each with recorded steps (CUDA graphs) and without; a whole
training of the model ``small`` on fairseq's Multi30k input, in the folder that CONVS2S_SHARED
names (else on the demo's corpus), with the translation of its test set; updates on 1, 2, 4 and 8
GPUs, as far as there are so many, with the share of the work of one that each does; and compiled
updates, which take minutes to begin. The last line of the output is one JSON object. What would
begin after ``--minutes`` is left out, and said to be. A measurement that fails is noted as failed
and the others go on; the exit code is 1 then, and where a figure is outside of ``BUDGETS``.

``--device cpu --tiny`` runs the same with the smallest sizes, so that it stays runnable.
``--figures FILE --write-docs`` writes the page from figures that were measured elsewhere.
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import torch

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.load import load
from convs2s.decoding.translate import LineTranslator
from convs2s.devices import keep_freed_memory, pick_device
from convs2s.errors import UserError
from convs2s.files.text import read_json, read_lines, write_json
from convs2s.scoring.bleu import corpus_bleu
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from gpu_corpus import Corpus, prepare_corpus
from gpu_docs import write_docs
from gpu_golden import golden_figures
from machine import RUNS, median_seconds, seconds_of
from random_model import write_random_model
from store import SENTENCES
from training import GIGA, PRECISIONS, WARM_UP, Training
from workers import Updates, measure
from workloads import ROOT, WMT_TYPES, workload

PAIRS, LENGTH = 320, 24
"""Sentence pairs of an update, of which a GPU needs more than a CPU, and the tokens of each side,
which padding for compiled kernels leaves as they are."""

UPDATES_OF_A_SAMPLE = 10
MATRIX = 8192
PRODUCTS = 10
BATCH = 128

ALONE = 100
"""Of so many sentences one is translated by itself as well."""

WORDS = 400
"""Words of the sentences to translate: which ones changes no figure."""

COUNTS = (1, 2, 4, 8)  # Of GPUs that train together

BUDGETS: dict[str, tuple[float, float]] = {
    "share_of_matrix_rate": (0.1, 1.0),
    "share_of_one": (0.8, 1.1),
    "peak_gigabytes": (0.0, 16.0),
}
"""The least and the most of a GPU's figures: of updates and, the last, of every measurement."""

Found = dict[str, Any]
Measurement = tuple[str, Callable[[], Found]]


def main() -> None:
    """Measure, print and write.

    Raises:
        SystemExit: the device is not there, or a measurement failed.
    """
    given = arguments()
    figures = (
        cast(Found, read_json(given.figures)) if given.figures else measured(given)
    )
    if given.write_docs:
        write_docs(figures)
    misses = missed(figures)
    if misses:
        sys.exit("gpu.py: " + "; ".join(misses))


def missed(figures: Found) -> list[str]:
    """Return what failed, and on a GPU each figure that is outside of its budget."""
    misses = []
    for name, found in figures["measurements"].items():
        if found == "failed":
            misses.append(f"{name} failed, as said above")
        if not isinstance(found, dict):
            continue
        if found.get("holds") is False:
            misses.append(f"{name} do not hold")
        for key, (least, most) in BUDGETS.items():
            if (
                figures["device"] != "cpu"
                and not least <= found.get(key, least) <= most
            ):
                misses.append(
                    f"{name}: {key} is {found[key]}, not in {least:g} to {most:g}"
                )
    return misses


def arguments() -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(description="Speed on a GPU.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--tiny", action="store_true", help="the smallest sizes, as a test"
    )
    parser.add_argument(
        "--minutes", type=float, default=5.5, help="default: %(default)s"
    )
    parser.add_argument("--output", type=Path, help="the JSON file to write")
    parser.add_argument("--figures", type=Path, help="such a file: measure nothing")
    parser.add_argument(
        "--write-docs", action="store_true", help="fill in docs/notes/gpu.md"
    )
    return parser.parse_args()


def measured(given: argparse.Namespace) -> Found:
    """Make every measurement there is time for; return all figures, and print them.

    Raises:
        SystemExit: the device is not there.
    """
    started = time.monotonic()
    try:
        device = pick_device(given.device)
    except UserError as error:
        sys.exit(f"gpu.py: {error}")
    keep_freed_memory()
    found: Found = {}
    figures = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "date": str(date.today()),
        "measurements": found,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in measurements(device, given.tiny, Path(folder)):
            is_late = time.monotonic() - started > 60.0 * given.minutes
            found[name] = (
                "not run: no time left" if is_late else _noted(name, measure, device)
            )
            print(f"{name}: {json.dumps(found[name])}", flush=True)
            if given.output:
                write_json(given.output, figures)
    print(json.dumps(figures))
    return figures


def _noted(name: str, measure: Callable[[], Found], device: str) -> Found | str:
    """Return a measurement's figures and seconds, or that it failed: the others go on then."""
    if device == "cuda":
        gc.collect()  # recorded graphs refer to themselves
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    try:
        figures = measure()
    except Exception:
        print(f"{name}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return "failed"
    if device == "cuda":
        figures.setdefault(
            "peak_gigabytes", round(torch.cuda.max_memory_allocated() / GIGA, 2)
        )
    return {**figures, "took_seconds": round(time.perf_counter() - started, 1)}


def measurements(device: str, tiny: bool, folder: Path) -> Iterator[Measurement]:
    """Yield each measurement's name and what makes it, those that take longest last."""
    yield "golden vectors, fp32", partial(golden_figures, device)
    size = 128 if tiny else MATRIX
    yield "matrix products", lambda: matrix_figures(device, size)
    first, second = ("tiny", "tiny") if tiny else ("wmt_en_fr", "wmt_en_de")
    for shape, precision in ((first, "bf16"), (second, "bf16"), (second, "fp32")):
        yield (
            f"training, {shape}, {precision}",
            partial(training_figures, shape, precision, False, device, size, folder),
        )
    name = "demo" if tiny else "fconv_wmt_en_fr"
    lines, model = table_3_lines()[: 2 if tiny else None], folder / "model.safetensors"
    for (what, some, batch), beam, graphs in product(
        (("table 3", lines, BATCH), ("one sentence at a time", lines[::ALONE], 1)),
        (1, 5),
        (False, True),
    ):
        yield (
            f"{what}, {name}, bf16, beam {beam}{', CUDA graphs' if graphs else ''}",
            partial(generation_figures, name, model, some, batch, beam, graphs, device),
        )
    yield (
        "a whole training, bf16",
        lambda: whole_training(device, tiny, folder / "whole"),
    )
    yield from scaling(device, first)
    if not tiny:
        for shape in (second, first):
            yield (
                f"training, {shape}, bf16, compiled",
                partial(training_figures, shape, "bf16", True, device, size, folder),
            )


def matrix_figures(device: str, size: int) -> Found:
    """Return the rate of products of square matrices in each precision."""
    return {
        f"{name}_gflops": round(matrix_rate(device, size, precision) / GIGA)
        for name, precision in PRECISIONS.items()
    }


def matrix_rate(device: str, size: int, precision: torch.dtype) -> float:
    """Return the FLOP/s of a product of square matrices, large enough for a GPU."""
    a, b = (torch.randn(size, size, device=device, dtype=precision) for _ in range(2))

    def multiply() -> None:
        for _ in range(PRODUCTS):
            a @ b
        finish(device)

    multiply()
    return 2.0 * size**3 * PRODUCTS / median_seconds(multiply)


def finish(device: str) -> None:
    """Wait for what the device has been told to do."""
    if device == "cuda":
        torch.cuda.synchronize()


def training_figures(
    shape: str, precision: str, compiled: bool, device: str, size: int, folder: Path
) -> Found:
    """Return the speed of updates, and their share of the matrix rate around them."""
    tiny = shape == "tiny"
    work = workload(shape, precision, folder, 2 if tiny else PAIRS, LENGTH)
    recipe = work.recipe.model_copy(update={"compile": compiled})
    before = matrix_rate(device, size, PRECISIONS[precision])
    training = Training(replace(work, recipe=recipe), device)
    begun = seconds_of(lambda: training.make(WARM_UP))
    updates = 1 if tiny else UPDATES_OF_A_SAMPLE
    samples = [training.sample(updates) for _ in range(RUNS)]
    tokens, rate = (statistics.median(one) for one in zip(*samples, strict=True))
    after = matrix_rate(device, size, PRECISIONS[precision])
    return {
        "tokens_per_second": round(tokens),
        "share_of_matrix_rate": round(2 * rate / (before + after), 3),
        "seconds_of_the_first_updates": round(begun, 1),
    }


def scaling(device: str, shape: str) -> Iterator[Measurement]:
    """Yield updates on each number of GPUs, each with as many pairs; of two workers on a CPU."""
    present = torch.cuda.device_count() if device == "cuda" else 2
    of_count: dict[int, float] = {}

    def together(count: int) -> Found:
        tiny = shape == "tiny"
        updates = 1 if tiny else UPDATES_OF_A_SAMPLE
        pairs = count * (2 if tiny else PAIRS)
        speed = measure(Updates(shape, "bf16", updates, device, pairs, LENGTH), count)
        of_count[count] = speed.tokens
        found = {
            "tokens_per_second": round(speed.tokens),
            "peak_gigabytes": round(speed.memory / GIGA, 2),
        }
        if 1 in of_count:  # else it failed
            found["share_of_one"] = round(speed.tokens / count / of_count[1], 3)
        return found

    for count in COUNTS:
        if count <= present:
            yield f"training, {shape}, bf16, {count} workers", partial(together, count)


def table_3_lines() -> list[str]:
    """Return 6003 lines of words, as long as those of newstest2012 and newstest2013."""
    generator = torch.Generator().manual_seed(1)
    lines = []
    for length, count in enumerate(SENTENCES):
        for _ in range(count):
            words = torch.randint(WORDS, (length - 1,), generator=generator)
            lines.append(" ".join(f"w{word}" for word in words.tolist()))
    return lines


def generation_figures(
    name: str,
    model: Path,
    lines: list[str],
    batch: int,
    beam: int,
    graphs: bool,
    device: str,
) -> Found:
    """Return the speed of translation in bf16; random weights write outputs of the most tokens."""
    if not model.exists():
        types = WORDS if name == "demo" else WMT_TYPES
        write_random_model(model, load(ROOT).model(name).architecture, types)
    settings = DecodingSettings(
        beam=beam,
        precision="bf16",
        cuda_graphs=graphs,
        batch_sentences=batch,
        batch_tokens=None,
        replace_unknown=False,
        maximum_length=MaximumLength(factor=1.2, offset=2),
    )
    translator = LineTranslator([model], settings, device, pretokenized=True)
    translator.translate_chunk(list(enumerate(lines[:batch], start=1)))
    found: list[int] = []

    def work() -> None:
        results = translator.translate_chunk(list(enumerate(lines, start=1)))
        found.extend(len(one.tokens) + 1 for one in results)
        finish(device)

    seconds = seconds_of(work)
    return {
        "sentences": len(lines),
        "seconds": round(seconds, 2),
        "sentences_per_second": round(len(lines) / seconds, 1),
        "tokens_per_second": round(sum(found) / seconds),
    }


def whole_training(device: str, tiny: bool, folder: Path) -> Found:
    """Train the model ``small`` in bf16 to its end, and translate the test set."""
    corpus, model = prepare_corpus(folder, tiny), folder / "model.safetensors"
    train(job_of(corpus, device, tiny, model))
    rows = [json.loads(line) for line in read_lines(folder / "history.jsonl")][:-1]
    best = min(rows, key=lambda row: row["valid_loss"])
    decoding = DecodingSettings(precision="bf16", replace_unknown=False)
    translator = LineTranslator([model], decoding, device, pretokenized=True)
    lines = list(enumerate(corpus.sources, start=1))
    texts = [corpus.restore(one.text) for one in translator.translate_chunk(lines)]
    score = corpus_bleu(texts, corpus.references, form="13a")
    return {
        "text": corpus.name,
        "epochs": len(rows),
        "training_seconds": round(
            sum(row["tokens"] / row["tokens_per_second"] for row in rows), 1
        ),
        "tokens_per_second": max(row["tokens_per_second"] for row in rows),
        "validation_perplexity": round(best["valid_perplexity"], 2),
        "bleu": f"{score.score:.2f}  {score.signature}",
    }


def job_of(corpus: Corpus, device: str, tiny: bool, model: Path) -> TrainingJob:
    """Return the training, whose model file is to be written."""
    small = load(ROOT).model("small")
    changes = {"precision": "bf16"} | ({"maximum_epochs": 1} if tiny else {})
    return TrainingJob(
        corpus.task,
        small.architecture,
        small.training.model_copy(update=changes),
        seed=1,
        output=model,
        dictionary=None,
        device=device,
        threads=torch.get_num_threads(),
    )


if __name__ == "__main__":
    main()
