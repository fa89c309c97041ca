"""Decoding a test set: from its raw text to JSON lines and plain text."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tqdm import tqdm

from convs2s.decoding.translate import prepare_translator
from convs2s.files import atomic_text, read_lines


def translate_file(
    models: Sequence[Path],
    source: Path,
    outputs: tuple[Path, Path],
    settings: Mapping[str, Any],
    *,
    device: str,
    threads: int,
) -> None:
    """Translate a file of raw text.

    Args:
        models: model files; several make an ensemble.
        source: raw text, one sentence a line.
        outputs: the JSON lines (fields of ``Translation``) and the plain text to write.
        settings: a validated entry of config/decodings.yaml.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
    """
    translator = prepare_translator(models, settings, device=device, threads=threads)
    with ExitStack() as stack:
        as_json, as_text = (stack.enter_context(atomic_text(path)) for path in outputs)
        for translation in tqdm(translator.translate(read_lines(source)), unit="line"):
            as_json.write(json.dumps(translation.as_json(), ensure_ascii=False) + "\n")
            as_text.write(translation.text + "\n")
