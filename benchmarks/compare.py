"""This project beside CTranslate2 and beside torch's own Transformer, in one run on this machine.

    python -m pip install -c constraints.txt -e '.[benchmarks]'
    python benchmarks/compare.py [--shape multi30k|wmt_en_fr] [--threads N] [--quick]

CTranslate2 and torch run Transformers of as many parameters, all with random weights, over the same
sources and with outputs of the same length. What is compared takes turns, so that other work on the
machine slows down none of it alone; figures are medians, of processor time (of all threads) and of
wall time. Here every precision is measured, ``auto`` says which of them it stands for, and
CTranslate2 chooses by its own ``auto``; its threads share each batch or, as here, have batches of
their own. torch's Transformer is trained alone: it has no search. Prints tables and, last, one JSON
object. ``--quick`` is a tiny network, once each, to see that everything runs.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from convs2s.pipeline.process import provide_environment

provide_environment()  # before torch is loaded

import torch  # noqa: E402

from convs2s.config.architecture import ConvS2SArchitecture  # noqa: E402
from convs2s.config.decoding import DecodingSettings, MaximumLength  # noqa: E402
from convs2s.decoding.translate import LineTranslator  # noqa: E402
from convs2s.devices import keep_freed_memory  # noqa: E402
from convs2s.manifest import processor  # noqa: E402
from convs2s.model_file import load_model  # noqa: E402
from convs2s.models.kernels import matmul  # noqa: E402
from convs2s.models.kernels.choice import fastest_kernel  # noqa: E402
from generation import random_lines  # noqa: E402
from machine import gemm_rate  # noqa: E402
from random_model import write_random_model  # noqa: E402
from training import PRECISIONS, Training  # noqa: E402
from transformer import TorchTransformer, shape_of, write_ctranslate2  # noqa: E402
from workloads import workload  # noqa: E402

Work = Callable[[], int]
"""Does something once; returns how many sentences or tokens it was."""


@dataclass(frozen=True)
class Case:
    """A network and what it translates.

    Attributes:
        types: of each side's vocabulary.
        sentences: how many there are; ``alone``: that are translated one at a time.
        source: tokens of each.
        output: tokens of each translation.
        batch: sentences at a time.
    """

    types: int
    sentences: int
    alone: int
    source: int
    output: int
    batch: int


CASES = {
    "multi30k": Case(5_000, 128, 8, 14, 14, 64),
    "wmt_en_fr": Case(40_000, 32, 2, 25, 30, 32),
    "tiny": Case(400, 4, 2, 5, 5, 4),
}
"""As many tokens as benchmarks/generation.py has; fewer sentences, as two systems take turns."""

KINDS = {"beam 1": (1, False), "beam 5": (5, False), "one at a time, beam 5": (5, True)}
"""What is measured -> its beam, and whether each sentence is translated alone."""


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    shapes = ["tiny"] if arguments.quick else [arguments.shape] if arguments.shape else [*CASES][:2]
    runs = 1 if arguments.quick else arguments.runs
    library = import_module("ctranslate2") if find_spec("ctranslate2") else None
    figures: dict[str, Any] = {
        "processor": processor(),
        "threads": arguments.threads,
        "torch": torch.__version__,
        "ctranslate2": metadata.version("ctranslate2") if library else "not installed",
        "runs": runs,
        "gemm_gflops": {name: round(gemm_rate(kind) / 1e9) for name, kind in PRECISIONS.items()},
    }
    print(", ".join(f"{name}: {value}" for name, value in figures.items()), flush=True)
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            compared = _generation(shape, Path(folder), library, arguments.threads, runs)
            torch.set_num_threads(arguments.threads)  # which CTranslate2 has changed
            compared["training"] = _training(shape, Path(folder), runs)
        figures[shape] = compared
    print(json.dumps(figures))


def _generation(
    shape: str, folder: Path, library: ModuleType | None, threads: int, runs: int
) -> dict[str, Any]:
    """Return the figures of each kind of generation, and print them."""
    case, path = CASES[shape], folder / "model.safetensors"
    architecture = workload(shape, "fp32", folder).architecture
    write_random_model(path, architecture, case.types)
    lines = random_lines(case.sentences, case.source, case.types // 2)
    own = sum(one.numel() for one in load_model(path)[0].parameters())
    size = shape_of(own, _width(architecture), case.types)
    figures: dict[str, Any] = {
        "parameters": {"this project": own, "Transformer": size.parameters},
        "Transformer": size._asdict(),
    }
    print(f"\n{shape}: {own:,} parameters; Transformers: {size.parameters:,}, {size}")
    model = folder / "ctranslate2"
    if library is not None:
        write_ctranslate2(library, model, size)
    for kind, (beam, alone) in KINDS.items():
        works: dict[str, Work] = {}
        auto = _translator(path, case, beam, alone, "auto", threads).ensemble.precision
        for precision in ("fp32", "bf16", "int8"):
            ours = _translator(path, case, beam, alone, precision, threads)
            name = f"this project, {precision}{' (auto)' if precision == auto else ''}"
            works[name] = partial(_translate, ours, case, alone, lines)
        if library is not None:
            works |= _by_ctranslate2(library, model, case, beam, alone, lines, threads)
        figures[kind] = _in_turn(works, runs)
        _print(f"{shape}: generation, {kind}", "sentences", figures[kind])
    return figures


def _translator(
    path: Path, case: Case, beam: int, alone: bool, precision: str, threads: int
) -> LineTranslator:
    settings = DecodingSettings(
        beam=beam,
        precision=precision,  # type: ignore[arg-type]
        minimum_length=case.output,
        maximum_length=MaximumLength(factor=0.0, offset=case.output),
        replace_unknown=False,
        batch_sentences=1 if alone else case.batch,
    )
    return LineTranslator([path], settings, "cpu", pretokenized=True, threads=threads)


def _translate(translator: LineTranslator, case: Case, alone: bool, lines: list[str]) -> int:
    given = lines[: case.alone] if alone else lines
    found = list(translator.translate(given, chunk=1 if alone else None))
    assert {len(one.tokens) for one in found} == {case.output}
    return len(found)


def _by_ctranslate2(
    library: ModuleType,
    model: Path,
    case: Case,
    beam: int,
    alone: bool,
    lines: list[str],
    threads: int,
) -> dict[str, Work]:
    """Return CTranslate2's works: its threads share each batch, or have batches of their own."""
    works: dict[str, Work] = {}
    shared = {"intra_threads": threads}, case.batch
    side_by_side = max(1, min(case.batch, len(lines) // threads))
    own = {"inter_threads": threads, "intra_threads": 1}, side_by_side
    for compute_type, (options, batch) in product(("float32", "auto"), (shared, own)):
        theirs = library.Translator(str(model), device="cpu", compute_type=compute_type, **options)
        is_auto = " (auto)" if compute_type == "auto" else ""
        by = "batches side by side" if "inter_threads" in options else "shared batches"
        work = partial(_translate_by_ctranslate2, theirs, case, batch, beam, alone, lines)
        works[f"CTranslate2, {theirs.compute_type}{is_auto}, {by}"] = work
    return works


def _translate_by_ctranslate2(
    translator: Any, case: Case, batch: int, beam: int, alone: bool, lines: list[str]
) -> int:
    tokens = [line.split() for line in lines]
    groups = [[one] for one in tokens[: case.alone]] if alone else [tokens]
    lengths = {"min_decoding_length": case.output, "max_decoding_length": case.output}
    options = {"beam_size": beam, "max_batch_size": batch, **lengths}
    found = [one for group in groups for one in translator.translate_batch(group, **options)]
    assert {len(one.hypotheses[0]) for one in found} == {case.output}
    return len(found)


def _training(shape: str, folder: Path, runs: int) -> dict[str, Any]:
    """Return the figures of training in each precision, and print them."""
    keep_freed_memory()  # as a training does
    figures: dict[str, Any] = {}
    for name, precision in PRECISIONS.items():
        training = Training(workload(shape, name, folder))
        case = CASES[shape]
        size = shape_of(training.parameters, _width(training.architecture), case.types)
        network = TorchTransformer(size, precision)
        tokens, length = training.make(1)[0], case.source
        pairs = torch.randint(4, size.types, (2, max(1, tokens // length), length))
        matmul.use(fastest_kernel(training.products) if name == "fp32" else "blas")

        def theirs(network: TorchTransformer = network, pairs: torch.Tensor = pairs) -> int:
            network.update(*pairs)
            return pairs[1].numel()

        works = {
            f"this project, {name}": lambda training=training: training.make(1)[0],
            f"torch's Transformer, {name}": theirs,
        }
        figures |= _in_turn(works, runs)
    _print(f"{shape}: training", "target tokens", figures)
    return figures


def _in_turn(works: Mapping[str, Work], runs: int) -> dict[str, dict[str, float]]:
    """Return the medians of each work, after it has been done once."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for number in range(runs + 1):
        for name, work in works.items():
            wall, processor_time = time.perf_counter(), time.process_time()
            count = work()
            spent = time.process_time() - processor_time, time.perf_counter() - wall
            if number:
                measured[name].append((count / spent[0], count / spent[1]))
    return {
        name: {
            "per_processor_second": round(statistics.median(one for one, _ in found), 2),
            "per_second": round(statistics.median(one for _, one in found), 2),
        }
        for name, found in measured.items()
    }


def _print(title: str, unit: str, figures: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{title + ', ' + unit:52} a processor second   a second")
    for name, rates in figures.items():
        print(f"  {name:50}{rates['per_processor_second']:19,.2f}{rates['per_second']:11,.2f}")


def _width(architecture: ConvS2SArchitecture) -> int:
    """Return the Transformer's width: that of the encoder's widest half of layers, in heads."""
    widths = sorted(layer.width for layer in architecture.encoder_layers)
    return max(64, widths[len(widths) // 2] // 64 * 64)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="This project beside others.")
    parser.add_argument("--shape", choices=("multi30k", "wmt_en_fr"), help="[both]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="[all cores]")
    parser.add_argument("--runs", type=int, default=5, help="of which the median counts [5]")
    parser.add_argument("--quick", action="store_true", help="a tiny network, once")
    return parser.parse_args()


if __name__ == "__main__":
    main()
