"""How long a test set takes to translate (paper, section 5.3 and table 3)."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator, prepare_translator
from convs2s.files.text import read_lines, write_json


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

    The clock runs from raw text to text, once, after a batch has been translated, so that nothing
    is set up while it runs. Whatever else the machine does is measured, too.

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
    tokens, seconds = _time(translator, lines)
    name = torch.cuda.get_device_name() if device == "cuda" else manifest["processor"]
    graphs = "CUDA graphs, " if device == "cuda" and settings.cuda_graphs else ""
    batches = f"{graphs}batches of up to {settings.batch_sentences}, torch {torch.__version__}"
    signature = f"{name}, {threads} CPU threads, {translator.settings.precision}, {batches}"
    counts = {"lines": len(lines), "tokens": tokens}
    rates = {f"{what}_per_second": count / seconds for what, count in counts.items()}
    timed = {"seconds": {"score": seconds, "signature": signature}}
    write_json(output, {**counts, **timed, **rates, "manifest": manifest})


def _time(translator: LineTranslator, lines: Sequence[str]) -> tuple[int, float]:
    """Return how many tokens all translations have, and how long they took."""
    for _ in translator.translate(lines[: translator.settings.batch_sentences]):
        pass
    print(f"timing the translation of {len(lines):,} lines", flush=True)
    started = time.perf_counter()
    # All together: batches come from the whole set, as in the paper.
    tokens = sum(len(one.tokens) + 1 for one in translator.translate(lines, chunk=len(lines)))
    return tokens, time.perf_counter() - started
