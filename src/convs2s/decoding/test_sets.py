"""Decode a test set from its raw text to JSON lines and plain text, or time its decoding."""

import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

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
    """Translate a file of raw text, and write the translations as JSON lines and as plain text.

    The JSON lines have the fields of `Translation`.
    """
    with atomic_text(lines) as as_json, atomic_text(text) as as_text:
        for translation in counted(translator.translate(read_lines(source)), " lines"):
            as_json.write(json.dumps(translation.as_line(), ensure_ascii=False) + "\n")
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

    The time is from raw text to text, and is measured once. One batch is translated before the
    measurement, so that the setup of the first batch is not included. The setup of later batches,
    such as CUDA graphs for other shapes, is included. Other processes on the machine increase the
    time.

    The JSON has these keys:

    - ``lines`` and ``tokens``: the numbers of lines and of tokens of the best hypotheses, ``</s>``
      included;
    - ``seconds``: the time, with a signature that describes the device and the settings;
    - ``lines_per_second`` and ``tokens_per_second``;
    - ``manifest``: the argument of this name, which has everything else that the time depends on.
    """
    settings = translator.settings
    lines = list(read_lines(source))
    list(translator.translate(lines[: settings.batch_sentences]))  # not timed
    print(f"timing the translation of {len(lines):,} lines", flush=True)
    started = time.perf_counter()
    # A single chunk, so that batches are formed over the whole test set, as in the paper.
    translations = translator.translate_chunk(list(enumerate(lines, start=1)))
    seconds = time.perf_counter() - started
    # Each translation has one </s>.
    tokens = sum(len(translation.tokens) + 1 for translation in translations)
    processor = manifest["processor"]
    graphs = ""
    if device == "cuda":
        from torch.cuda import get_device_name

        processor = get_device_name()
        graphs = "CUDA graphs, " if settings.cuda_graphs else ""
    library = f"torch {version('torch')}"
    batches = f"{graphs}batches of up to {settings.batch_sentences}, {library}"
    signature = f"{processor}, {threads} CPU threads, {settings.precision}, {batches}"
    content = {
        "lines": len(lines),
        "tokens": tokens,
        "seconds": {"score": seconds, "signature": signature},
        "lines_per_second": len(lines) / seconds,
        "tokens_per_second": tokens / seconds,
        "manifest": manifest,
    }
    write_json(output, content)
