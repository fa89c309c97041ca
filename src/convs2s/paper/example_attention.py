"""A sentence translated by a model, with the attention of each decoder layer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.data.vocabulary import END, SPECIAL_TOKENS
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_json
from convs2s.paper.example_record import ExampleAttention, LayerCount

_DIGITS = 4


def attend_to_example(
    *,
    model: Path,
    sentence: str,
    settings: DecodingSettings,
    header: Mapping[str, str],
    stand_in: str | None,
    output: Path,
    manifest: Mapping[str, object],
) -> None:
    """Translate a sentence and write where each decoder layer looks meanwhile.

    Args:
        model: the model file.
        sentence: raw text.
        settings: how to search.
        header: task, model, run and scale.
        stand_in: what the data is, where it is not the paper's.
        output: the JSON file to write.
        manifest: what it rests on.

    Raises:
        UserError: the model has no attention.
    """
    written = example_of(model, sentence, settings, header, stand_in)
    write_json(output, {**asdict(written), "manifest": manifest})


def example_of(
    model: Path,
    sentence: str,
    settings: DecodingSettings,
    header: Mapping[str, str],
    stand_in: str | None,
) -> ExampleAttention:
    """Translate a sentence and return where each decoder layer looks meanwhile.

    The arguments are those of `attend_to_example`.

    Raises:
        UserError: the model has no attention.
    """
    found, weights = _attend(model, sentence, settings)
    end = SPECIAL_TOKENS[END]
    lengths = f"{len(found.source_tokens)} tokens of source and {len(found.tokens)} of translation"
    # No text: a ledger takes no signature that a page could read as markup.
    told = f"{lengths}, {header['model']} {header['run']}"
    return ExampleAttention(
        **header,
        stand_in=stand_in,
        source=sentence,
        source_tokens=[*found.source_tokens, end],
        translation=found.text,
        target_tokens=[*found.tokens, end],
        layers=LayerCount(len(weights), told),
        weights=weights,
    )


def sentence_of(stated: str | None, text: Sequence[str], line: int | None) -> str:
    """Return the sentence that is shown.

    Args:
        stated: it, where it is stated.
        text: else the file of raw sentences that has it.
        line: its number in there, from 1.

    Raises:
        UserError: the file has no such line.
    """
    if stated is not None:
        return stated
    assert line is not None
    found = next(read_lines(text[0], line - 1), None)
    if found is None:
        raise UserError(
            f"config/scales: example_line is {line}, but {text[0]} has fewer: name one of them"
        )
    return found


def _attend(
    model: Path, sentence: str, settings: DecodingSettings
) -> tuple[Translation, list[list[list[float]]]]:
    """Return a sentence's translation and its attention (layers, target, source)."""
    torch.set_num_threads(1)  # it is one sentence
    translator = LineTranslator([model], settings, "cpu")
    (found,) = translator.translate([sentence])
    weights = translator.attention(found).weights
    return found, np.round(weights.astype(np.float64), _DIGITS).tolist()
