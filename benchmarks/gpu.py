"""How fast are training and translation on a GPU?

    PYTHONPATH=src python benchmarks/gpu.py

Updates of the two WMT architectures in bf16, eager and compiled, with the share of the device's
matrix rate and the peak of its memory; table 3's workload (6003 sentences, batches of 128) by
random weights; and a whole training on Multi30k with the translation of its test set, where the
folder that CONVS2S_SHARED names has fairseq's input, else ``not run``. Each figure is printed as
it is there; the last line is one JSON object. On a machine without the device it says so and
fails. ``--device cpu --tiny`` runs the same with the smallest sizes, so that it stays runnable.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.load import load
from convs2s.decoding.translate import Translator
from convs2s.devices import pick_device
from convs2s.errors import UserError
from convs2s.files import read_lines
from convs2s.scoring.bleu import detokenized_bleu
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.training.job import TrainingJob
from convs2s.training.memory import keep_freed_memory
from convs2s.training.run import train
from fairseq_task import prepare_fairseq_task
from machine import RUNS, median_seconds, seconds_of
from random_model import write_random_model
from store import SENTENCES
from training import GIGA, WARM_UP, Training
from workloads import ROOT, WMT_TYPES, fairseq_folder, workload

PAIRS = 320
"""Sentence pairs of an update; a GPU needs more of them than a CPU."""

UPDATES_OF_A_SAMPLE = 10
MATRIX = 8192
BATCH = 128

WORDS = 400
"""Words of the sentences to translate: which ones changes no figure."""


def main() -> None:
    """Measure and print.

    Raises:
        SystemExit: the device is not there.
    """
    parser = argparse.ArgumentParser(description="Speed on a GPU.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="the smallest sizes, as a test")
    arguments = parser.parse_args()
    try:
        device = pick_device(arguments.device)
    except UserError as error:
        sys.exit(f"gpu.py: {error}")
    keep_freed_memory()
    cuda = device == "cuda"
    figures: dict[str, Any] = {"device": torch.cuda.get_device_name() if cuda else "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        for name, found in measurements(device, arguments.tiny, Path(folder)):
            print(f"{name}: {json.dumps(found)}", flush=True)
            figures[name] = found
    print(json.dumps(figures))


def measurements(device: str, tiny: bool, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield each measurement's name and figures."""
    rate = matrix_rate(device, 128 if tiny else MATRIX)
    yield "matrix_gflops", round(rate / GIGA)
    for shape in ("tiny",) if tiny else ("wmt_en_de", "wmt_en_fr"):
        for compiled in (False,) if tiny else (False, True):
            name = f"training {shape} {'compiled' if compiled else 'eager'}"
            yield name, training_figures(shape, compiled, device, rate, folder)
    name, types = ("demo", WORDS) if tiny else ("fconv_wmt_en_fr", WMT_TYPES)
    model = folder / "model.safetensors"
    write_random_model(model, load(ROOT).model(name).architecture, types)
    lines = table_3_lines()[: 2 if tiny else None]
    for beam in (1, 5):
        yield f"table 3, beam {beam}", generation_figures(model, lines, beam, device)
    fairseq = fairseq_folder()
    if fairseq.is_dir():
        yield "multi30k", multi30k_figures(fairseq, device, tiny, folder / "multi30k")
    else:
        yield "multi30k", "not run"


def matrix_rate(device: str, size: int) -> float:
    """Return the FLOP/s of a product of square bf16 matrices, large enough for a GPU."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    times = 10

    def multiply() -> None:
        for _ in range(times):
            a @ b
        finish(device)

    multiply()
    return 2.0 * size**3 * times / median_seconds(multiply)


def finish(device: str) -> None:
    """Wait for what the device has been told to do."""
    if device == "cuda":
        torch.cuda.synchronize()


def training_figures(
    shape: str, compiled: bool, device: str, matrix: float, folder: Path
) -> dict[str, Any]:
    """Return the speed and the memory of updates in bf16."""
    tiny = shape == "tiny"
    work = workload(shape, "bf16", folder, pairs=2 if tiny else PAIRS)
    recipe = work.recipe.model_copy(update={"compile": compiled})
    training = Training(replace(work, recipe=recipe), device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    training.sample(WARM_UP)
    updates = 1 if tiny else UPDATES_OF_A_SAMPLE
    samples = [training.sample(updates) for _ in range(RUNS)]
    tokens, rate = (statistics.median(one) for one in zip(*samples, strict=True))
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return {
        "tokens_per_second": round(tokens),
        "share_of_matrix_rate": round(rate / matrix, 3),
        "peak_gigabytes": None if peak is None else round(peak / GIGA, 2),
    }


def table_3_lines() -> list[str]:
    """Return 6003 lines of words, as long as those of newstest2012 and newstest2013."""
    generator = torch.Generator().manual_seed(1)
    lines = []
    for length, count in enumerate(SENTENCES):
        for _ in range(count):
            words = torch.randint(WORDS, (length - 1,), generator=generator)
            lines.append(" ".join(f"w{word}" for word in words.tolist()))
    return lines


def generation_figures(model: Path, lines: list[str], beam: int, device: str) -> dict[str, Any]:
    """Return the speed of translation in bf16; random weights write outputs of the most tokens."""
    settings = DecodingSettings(
        beam=beam,
        precision="bf16",
        batch_sentences=BATCH,
        batch_tokens=None,
        replace_unknown=False,
        maximum_length=MaximumLength(factor=1.2, offset=2),
    )
    translator = Translator([model], settings, device, pretokenized=True)
    translator.translate_chunk(list(enumerate(lines[:BATCH], start=1)))
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


def multi30k_figures(fairseq: Path, device: str, tiny: bool, folder: Path) -> dict[str, Any]:
    """Train the model ``small`` in bf16 on fairseq's input and translate its test set."""
    model = folder / "model.safetensors"
    train(multi30k_job(fairseq, device, tiny, model))
    rows = [json.loads(line) for line in read_lines(folder / "history.jsonl")][:-1]
    best = min(rows, key=lambda row: row["valid_loss"])
    seconds = sum(row["tokens"] / row["tokens_per_second"] for row in rows[: best["epoch"]])
    decoding = DecodingSettings(precision="bf16", replace_unknown=False)
    translator = Translator([model], decoding, device, pretokenized=True)
    most = 2 if tiny else None
    lines = list(enumerate(read_lines(fairseq / "src.bpe.en"), start=1))[:most]
    german = Preparation("moses_test", "de")
    texts = [german.restore(join(one.text)) for one in translator.translate_chunk(lines)]
    score = detokenized_bleu(texts, list(read_lines(fairseq / "ref.raw.de"))[:most])
    return {
        "seconds_to_best_perplexity": round(seconds, 1),
        "best_epoch": best["epoch"],
        "validation_perplexity": round(best["valid_perplexity"], 2),
        "bleu": f"{score.score:.2f}  {score.signature}",
    }


def multi30k_job(fairseq: Path, device: str, tiny: bool, model: Path) -> TrainingJob:
    """Prepare fairseq's input beside the model file to write, and return the training."""
    task = prepare_fairseq_task(fairseq / "bpe", model.parent, 50 if tiny else None)
    small = load(ROOT).model("small")
    changes = {"precision": "bf16"} | ({"maximum_epochs": 1} if tiny else {})
    return TrainingJob(
        task,
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
