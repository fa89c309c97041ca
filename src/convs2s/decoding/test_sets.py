"""Decoding a test set: from its raw text to JSON lines and plain text."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.progress import counted
from convs2s.decoding.translate import prepare_translator
from convs2s.files.text import atomic_text, read_lines


def decode_test_set(
    *,
    models: Sequence[Path],
    source: Path,
    lines: Path,
    text: Path,
    settings: DecodingSettings,
    device: str,
    threads: int,
) -> None:
    """Translate a file of raw text.

    Args:
        models: model files; several make an ensemble.
        source: raw text, one sentence a line.
        lines: the JSON lines to write: the fields of ``Translation``.
        text: the plain text to write.
        settings: how to search.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
    """
    translator = prepare_translator(models, settings, device=device, threads=threads)
    with ExitStack() as stack:
        as_json, as_text = (stack.enter_context(atomic_text(path)) for path in (lines, text))
        for translation in counted(translator.translate(read_lines(source)), " lines"):
            as_json.write(json.dumps(translation.as_json(), ensure_ascii=False) + "\n")
            as_text.write(translation.text + "\n")
