"""How fast does a model translate, beside the machine's own matrix rate and a plain decoder?

    python benchmarks/generation.py --shape multi30k|wmt_en_fr --beam N --precision fp32|bf16|int8

``multi30k``: fairseq's model of Multi30k English-German and the 1000 sentences of its test set,
where the folder that CONVS2S_SHARED names has them; else random weights of that shape and outputs
of 14 tokens. ``wmt_en_fr``: random weights of ``fconv_wmt_en_fr`` (258 million), 64 sentences of
25 tokens, outputs of 30. What is timed is everything from tokens to tokens. Prints medians of five
runs and, last, one JSON object: tokens (of the best hypothesis, ``</s>`` counted) and sentences
per second, and the share of the machine's bf16 matrix rate, from the FLOPs of all hypotheses.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import torch

from convs2s.config.architecture import Architecture, ConvS2SArchitecture, parse_architecture
from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.config.load import load
from convs2s.decoding.parallel import translate_chunks
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.files.text import read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.model_file import load_model
from convs2s.models.convs2s import ConvS2S
from convs2s.scoring.bleu import tokenized_bleu
from convs2s.text.bpe import join
from flops import flops
from machine import gemm_rate, median_seconds
from plain_decoder import plain_search
from random_model import write_random_model
from workloads import FAIRSEQ, ROOT, fairseq_folder

T = TypeVar("T")


class Lengths(NamedTuple):
    """The fewest and the most tokens that outputs have."""

    least: int
    most: int


@dataclass(frozen=True)
class Workload:
    """What is translated.

    Attributes:
        model: the model file.
        lines: the sources' tokens.
        lengths: of the outputs.
        plain_lines: how many of the lines the plain decoder gets.
        reference: the translations' words, where there are any.
    """

    model: Path
    lines: list[str]
    lengths: Lengths
    plain_lines: int
    reference: list[str] | None = None


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        workload = WORKLOADS[arguments.shape](Path(folder))
        settings = decoding_of(workload, arguments)
        threads = arguments.threads
        plain = apart(plain_rate, workload, settings, threads)
        # A process that forks must not have computed with several threads.
        torch.set_num_threads(threads if arguments.workers == 1 else 1)
        translator = LineTranslator(
            [workload.model],
            settings,
            "cpu",
            pretokenized=True,
            threads=max(1, threads // arguments.workers),
        )
        lines = list(enumerate(workload.lines, start=1))
        found = translator.translate_chunk(lines, arguments.beam)

        translate = ChunkTranslator(translator, False, None)
        size = -(-len(lines) // arguments.workers)
        chunks = [lines[start : start + size] for start in range(0, len(lines), size)]

        def work() -> None:
            for _ in translate_chunks(translate, chunks, arguments.workers):
                pass

        rates = [apart(rate_of_gemm, threads)]
        work()
        seconds = median_seconds(work)
        rates.append(apart(rate_of_gemm, threads))
        asked = model_flops(translator, found)
    report(found, seconds, sum(rates) / 2, asked, plain, workload.reference)


def decoding_of(workload: Workload, arguments: argparse.Namespace) -> DecodingSettings:
    """Return how to search."""
    return DecodingSettings(
        beam=arguments.beam,
        precision=arguments.precision,
        minimum_length=workload.lengths.least,
        maximum_length=MaximumLength(factor=0.0, offset=workload.lengths.most),
        replace_unknown=False,
        batch_sentences=arguments.batch_sentences,
    )


def report(
    found: Sequence[Translation],
    seconds: float,
    rate: float,
    asked: float,
    plain: float,
    reference: Sequence[str] | None,
) -> None:
    """Print the figures."""
    tokens = sum(len(one.tokens) + 1 for one in found)
    print(f"{len(found)} sentences, {tokens} tokens: {seconds:.3f} s, median of 5 runs")
    print(f"bf16 matrix rate (mean of before and after): {rate / 1e9:.0f} GFLOP/s")
    print(f"model: {asked / 1e9:.0f} GFLOP, {asked / seconds / 1e9:.0f} GFLOP/s")
    print(f"plain decoder, fp32: {plain:.2f} sentences/s")
    figures = {
        "tokens_per_second": round(tokens / seconds, 1),
        "sentences_per_second": round(len(found) / seconds, 2),
        "share_of_gemm": round(asked / seconds / rate, 4),
        "gemm_gflops": round(rate / 1e9),
        "plain_sentences_per_second": round(plain, 3),
    }
    if reference is not None:
        score = tokenized_bleu([join(one.text) for one in found], reference)
        print(f"BLEU = {score.score:.2f}  {score.signature}  ({len(found)} lines)")
        figures["bleu"] = round(score.score, 2)
    print(json.dumps(figures))


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Run a measurement in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def rate_of_gemm(threads: int) -> float:
    """Return the machine's bf16 FLOP/s."""
    torch.set_num_threads(threads)
    return gemm_rate()


def plain_rate(workload: Workload, settings: DecodingSettings, threads: int) -> float:
    """Return the sentences per second of the plain decoder, in fp32."""
    torch.set_num_threads(threads)
    network, description = load_model(workload.model)
    vocabulary = description.source_vocabulary()
    lines = random.Random(1).sample(workload.lines, workload.plain_lines)
    rows = [torch.tensor(vocabulary.encode(line.split())) for line in lines]
    plain_search(cast(ConvS2S, network), rows[0], settings)
    started = time.perf_counter()
    for row in rows:
        plain_search(cast(ConvS2S, network), row, settings)
    return len(rows) / (time.perf_counter() - started)


def model_flops(translator: LineTranslator, found: Sequence[Translation]) -> float:
    """Return the FLOPs of reading the sources and writing all finished hypotheses."""
    architecture = translator.description.architecture
    assert isinstance(architecture, ConvS2SArchitecture)
    count = flops(architecture, len(translator.target))
    total = 0.0
    for one in found:
        source = len(one.source_tokens) + 1
        tokens = sum(len(hypothesis.tokens) + 1 for hypothesis in one.n_best)
        total += count.forward(source, tokens, source * tokens)
    return total


def multi30k(folder: Path) -> Workload:
    """Return fairseq's model and test set, or random weights and words of their shape."""
    fairseq, path = fairseq_folder(), folder / "model.safetensors"
    if not fairseq.is_dir():
        stated = architecture_of("small").model_dump(mode="json") | FAIRSEQ["architecture"]
        write_random_model(path, parse_architecture(stated, "fairseq's"), types=8000)
        return Workload(path, random_lines(1000, 14), Lengths(14, 14), 20)
    names = "checkpoint_best.pt", "dict.en.txt", "dict.de.txt", "codes.8000"
    files = FairseqFiles(*(fairseq / name for name in names))
    import_fairseq(files, path, task="multi30k", languages=None, preparation="moses_test")
    lines, reference = (list(read_lines(fairseq / name)) for name in ("src.bpe.en", "ref.tok.de"))
    return Workload(path, lines, Lengths(0, 200), 20, reference)


def wmt_en_fr(folder: Path) -> Workload:
    """Return random weights of the shape of the released English-French network."""
    path = folder / "model.safetensors"
    write_random_model(path, architecture_of("fconv_wmt_en_fr"), types=40_000)
    return Workload(path, random_lines(64, 25), Lengths(30, 30), 1)


def architecture_of(model: str) -> Architecture:
    """Return the network of a model of config/models.yaml."""
    return load(ROOT).model(model).architecture


def random_lines(count: int, length: int, types: int = 5000) -> list[str]:
    """Return sentences of random words."""
    generator = random.Random(1)
    return [" ".join(f"w{generator.randrange(types)}" for _ in range(length)) for _ in range(count)]


WORKLOADS = {"multi30k": multi30k, "wmt_en_fr": wmt_en_fr}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed of translation.")
    parser.add_argument("--shape", choices=WORKLOADS, required=True)
    parser.add_argument("--beam", type=int, default=5, help="[5]")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of all workers")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with a share [1]")
    parser.add_argument("--batch-sentences", type=int, default=64, help="[64]")
    return parser.parse_args()


if __name__ == "__main__":
    main()
