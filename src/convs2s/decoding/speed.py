"""How long a test set takes to translate (paper, section 5.3 and table 3)."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import prepare_translator
from convs2s.files import read_lines, write_json


def time_decoding(
    *,
    models: Sequence[Path],
    source: Path,
    output: Path,
    settings: DecodingSettings,
    device: str,
    threads: int,
    manifest: Mapping[str, object],
) -> None:
    """Translate a file of raw text in memory, and write as JSON how long it took.

    The clock runs from raw text to text, once; it starts after the models are loaded and a batch
    is translated, so that nothing is set up while it runs. Whatever else the machine does is
    measured, too.

    Args:
        models: model files; several make an ensemble.
        source: raw text, one sentence a line.
        output: the file to write: ``lines``, ``tokens`` (of the best hypotheses, ``</s>``
            counted), ``seconds`` with what they were measured on, both per second.
        settings: how to search.
        device: ``cpu`` or ``cuda``.
        threads: CPU threads.
        manifest: what else the number rests on.

    Raises:
        UserError: ``cuda`` is asked for where there is none.
    """
    translator = prepare_translator(models, settings, device=device, threads=threads)
    lines = list(read_lines(source))
    for _ in translator.translate(lines[: settings.batch_sentences]):
        pass
    print(f"timing the translation of {len(lines):,} lines", flush=True)
    started = time.perf_counter()
    # All together: batches come from the whole set, as in the paper.
    tokens = sum(len(one.tokens) + 1 for one in translator.translate(lines, chunk=len(lines)))
    seconds = time.perf_counter() - started
    name = torch.cuda.get_device_name() if device == "cuda" else manifest["processor"]
    signature = (
        f"{name}, {threads} CPU threads, {settings.precision}, batches of up to "
        f"{settings.batch_sentences}, torch {torch.__version__}"
    )
    result = {
        "lines": len(lines),
        "tokens": tokens,
        "seconds": {"score": seconds, "signature": signature},
        "lines_per_second": len(lines) / seconds,
        "tokens_per_second": tokens / seconds,
        "manifest": manifest,
    }
    write_json(output, result)
