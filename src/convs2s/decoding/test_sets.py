"""Decoding a test set, from its raw text to JSON lines and plain text; and timing it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import torch

from convs2s.decoding.progress import counted
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import atomic_text, read_lines, write_json


def decode_test_set(
    translator: LineTranslator,
    *,
    source: Path,
    lines: Path,
    text: Path,
) -> None:
    """Translate a file of raw text to JSON lines of ``Translation``'s fields and to plain text."""
    with atomic_text(lines) as as_json, atomic_text(text) as as_text:
        for translation in counted(translator.translate(read_lines(source)), " lines"):
            as_json.write(json.dumps(translation.as_json(), ensure_ascii=False) + "\n")
            as_text.write(translation.text + "\n")


def time_decoding(
    translator: LineTranslator,
    *,
    source: Path,
    output: Path,
    device: str,
    threads: int,
    manifest: Mapping[str, object],
) -> None:
    """Translate a file of raw text in memory, and write how long it took (section 5.3, table 3).

    The JSON has ``lines``, ``tokens`` (of the best hypotheses, ``</s>`` counted), both per second,
    and ``seconds`` with what they were measured on. The clock runs from raw text to text, once,
    after a batch has been translated, so that nothing is set up while it runs. Other processes of
    the machine slow it down. ``manifest`` is what else the number depends on.
    """
    settings = translator.settings
    lines = list(read_lines(source))
    list(translator.translate(lines[: settings.batch_sentences]))
    print(f"timing the translation of {len(lines):,} lines", flush=True)
    started = time.perf_counter()
    # All together: batches come from the whole set, as in the paper.
    tokens = sum(len(best.tokens) + 1 for best in translator.translate(lines, chunk=len(lines)))
    seconds = time.perf_counter() - started
    name = torch.cuda.get_device_name() if device == "cuda" else manifest["processor"]
    graphs = "CUDA graphs, " if device == "cuda" and settings.cuda_graphs else ""
    batches = f"{graphs}batches of up to {settings.batch_sentences}, torch {torch.__version__}"
    signature = f"{name}, {threads} CPU threads, {settings.precision}, {batches}"
    content = {
        "lines": len(lines),
        "tokens": tokens,
        "seconds": {"score": seconds, "signature": signature},
        "lines_per_second": len(lines) / seconds,
        "tokens_per_second": tokens / seconds,
        "manifest": manifest,
    }
    write_json(output, content)
