"""A sentence translated by a model, with the attention of each decoder layer."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, SPECIAL_TOKENS
from convs2s.decoding.attention import layer_attention
from convs2s.decoding.translate import Translation, Translator
from convs2s.errors import UserError
from convs2s.files import read_lines, write_json
from convs2s.model_file import load_model
from convs2s.paper.example import ExampleAttention, LayerCount

_DIGITS = 4


def attend_to_example(
    *,
    model: Path,
    sentence: str | None,
    text: Path | None,
    line: int | None,
    settings: DecodingSettings,
    header: Mapping[str, str],
    stand_in: str | None,
    output: Path,
    manifest: Mapping[str, object],
) -> None:
    """Translate a sentence and write where each decoder layer looks meanwhile.

    Args:
        model: the model file.
        sentence: raw text; None: a line of ``text``.
        text: raw sentences; None where the sentence is stated.
        line: number of the sentence in there, from 1; likewise.
        settings: how to search.
        header: task, model, run and scale.
        stand_in: what the data is, where it is not the paper's.
        output: the JSON file to write.
        manifest: what it rests on.

    Raises:
        UserError: the model has no attention, or the text has no such line.
    """
    raw = sentence or _line_of(text, line)
    found, weights = _attend(model, raw, settings)
    told = f'"{raw}" as "{found.text}" by {header["model"]} {header["run"]}'
    end = SPECIAL_TOKENS[END]
    written = ExampleAttention(
        **header,
        stand_in=stand_in,
        source=raw,
        source_tokens=[*found.source_tokens, end],
        translation=found.text,
        target_tokens=[*found.tokens, end],
        layers=LayerCount(len(weights), told),
        weights=weights,
    )
    write_json(output, {**asdict(written), "manifest": manifest})


def _attend(
    model: Path, sentence: str, settings: DecodingSettings
) -> tuple[Translation, list[list[list[float]]]]:
    """Return a sentence's translation and its attention (layers, target, source)."""
    network, _ = load_model(model)
    if not network.attends:
        raise UserError(f"{model}: has no attention to plot")
    torch.set_num_threads(1)  # it is one sentence
    translator = Translator([model], settings, "cpu")
    (found,) = translator.translate([sentence])
    source = translator.source.encode(found.source_tokens)
    weights = layer_attention(network, source, translator.target.encode(found.tokens))
    return found, np.round(weights.double().numpy(), _DIGITS).tolist()


def _line_of(text: Path | None, line: int | None) -> str:
    assert text is not None
    assert line is not None
    found = next(read_lines(text, line - 1), None)
    if found is None:
        raise UserError(
            f"config/scales: example_line is {line}, but {text} has fewer lines: name one of them"
        )
    return found
