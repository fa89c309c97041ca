"""Models that fairseq trained: from its checkpoint, dictionaries and BPE codes to a model file."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from torch import Tensor

from convs2s.config.architecture import Architecture, parse_architecture
from convs2s.errors import UserError, failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines
from convs2s.interop.checkpoint import Checkpoint, read_checkpoint
from convs2s.interop.expressions import evaluate
from convs2s.interop.layout import FAIRSEQ_SPECIAL_TOKENS, FIRST_POSITION, convert
from convs2s.model_file import ModelDescription, check_weights, save_model
from convs2s.models.build import build_network, shapes_alone

SETTINGS = (
    "encoder_layers",
    "decoder_layers",
    "decoder_attention",
    "decoder_embed_dim",
    "decoder_out_embed_dim",
    "dropout",
)
"""What a checkpoint says of its network; the rest is seen in the weights."""


@dataclass(frozen=True)
class FairseqFiles:
    """What makes up a model of fairseq's.

    Attributes:
        checkpoint: the file that fairseq-train wrote.
        source_dictionary: dict.LANGUAGE.txt, a type and its count a line.
        target_dictionary: likewise.
        bpe_codes: BPE codes, or None for a model over whole words.
    """

    checkpoint: Path
    source_dictionary: Path
    target_dictionary: Path
    bpe_codes: Path | None


def import_fairseq(
    files: FairseqFiles,
    output: Path,
    *,
    task: str,
    languages: Mapping[str, str] | None,
    preparation: str,
) -> None:
    """Write the model file of a network that fairseq trained.

    Args:
        files: the model's.
        output: the model file to write.
        task: the name that the model file gives as its task.
        languages: of both sides; None takes those that the checkpoint states.
        preparation: name of the recipe from raw text to the words that the codes split.

    Raises:
        UserError: a file is missing or something else, or they do not fit together.
    """
    name = str(files.checkpoint)
    checkpoint = read_checkpoint(files.checkpoint)
    with failures_of_file(name, "not a network of fairseq's that is read here"):
        architecture, types, weights = _converted(files, checkpoint)
    description = ModelDescription(
        task=task,
        languages=dict(languages or _languages(checkpoint, name)),
        preparation=preparation,
        architecture=architecture,
        source_types=types["encoder"],
        target_types=types["decoder"],
        bpe_codes=_codes(files),
        training=_origin(files, weights),
    )
    save_model(output, weights, description)


def _converted(
    files: FairseqFiles, checkpoint: Checkpoint
) -> tuple[Architecture, dict[str, list[str]], dict[str, Tensor]]:
    """Return the network, the types of each side by fairseq's name of it, and our weights."""
    name = str(files.checkpoint)
    architecture = architecture_of(checkpoint, name)
    types = _types(files, checkpoint)
    sizes = (len(checkpoint.weights[_table(side)]) for side in types)
    with shapes_alone():
        network = build_network(architecture, *sizes)
    weights = convert(checkpoint.weights, network, name)
    check_weights(weights, network, name)
    return architecture, types, weights


def _codes(files: FairseqFiles) -> str | None:
    """Return the BPE codes, each line ended by a line feed."""
    if files.bpe_codes is None:
        return None
    return "".join(f"{row}\n" for row in read_lines(files.bpe_codes))


def _types(files: FairseqFiles, checkpoint: Checkpoint) -> dict[str, list[str]]:
    """Return the types of each side by fairseq's name of it."""
    dictionaries = {"encoder": files.source_dictionary, "decoder": files.target_dictionary}
    return {side: read_types(path, checkpoint, side) for side, path in dictionaries.items()}


def _origin(files: FairseqFiles, weights: Mapping[str, Tensor]) -> dict[str, object]:
    """Return what the model file says in place of a training."""
    return {
        "imported_from": "fairseq",
        "checkpoint_sha256": sha256(files.checkpoint),
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }


def architecture_of(checkpoint: Checkpoint, name: str) -> Architecture:
    """Return the description of a checkpoint's network.

    Raises:
        UserError: it is no fconv network, or one with what ConvS2S networks here do not have.
    """
    arguments = checkpoint.arguments
    for setting in SETTINGS:
        if setting not in arguments:
            raise UserError(f"{name}: not an fconv network: its settings have no {setting!r}")
    decoder = _layers(arguments, "decoder_layers", name)
    settings = {
        "embedding": arguments["decoder_embed_dim"],
        "output_embedding": arguments["decoder_out_embed_dim"],
        "encoder": _stacks(_layers(arguments, "encoder_layers", name)),
        "decoder": _stacks(decoder),
        "attention": _attention(arguments, len(decoder), name),
        "positions": {"maximum": _positions(checkpoint, name)},
        "dropout": arguments["dropout"],
        "gradient_scaling": "fairseq",
    }
    return parse_architecture(settings, name)


def _layers(arguments: Mapping[str, Any], key: str, name: str) -> list[tuple[int, int]]:
    """Return the width and kernel of each layer, bottom first."""
    layers = evaluate(arguments[key], f"{name}: {key}")
    if not isinstance(layers, list) or not all(
        isinstance(layer, tuple) and len(layer) in (2, 3) for layer in layers
    ):
        raise UserError(f"{name}: {key}: expected a list of (width, kernel), not {layers!r:.60}")
    if any(layer[2:] not in ((), (1,)) for layer in layers):
        raise UserError(
            f"{name}: {key}: a residual connection that skips layers or is absent cannot be "
            f"imported: {arguments[key]}"
        )
    return [layer[:2] for layer in layers]


def _stacks(layers: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [
        {"layers": len(list(equal)), "width": width, "kernel": kernel}
        for (width, kernel), equal in groupby(layers)
    ]


def _attention(arguments: Mapping[str, Any], layers: int, name: str) -> str | list[int]:
    """Return which decoder layers attend: all, or their numbers from 1."""
    stated = evaluate(arguments["decoder_attention"], f"{name}: decoder_attention")
    attends = stated if isinstance(stated, list) else [stated] * layers
    if len(attends) != layers or not all(isinstance(attend, bool) for attend in attends):
        raise UserError(
            f"{name}: decoder_attention: expected True or False for each of {layers} layers, "
            f"not {arguments['decoder_attention']}"
        )
    return "all" if all(attends) else [number for number, on in enumerate(attends, 1) if on]


def _positions(checkpoint: Checkpoint, name: str) -> int:
    rows = [_rows(checkpoint, f"{side}.embed_positions.weight") for side in ("encoder", "decoder")]
    if rows[0] != rows[1]:
        raise UserError(
            f"{name}: has {rows[0]} source and {rows[1]} target positions: a model here has as "
            "many on both sides"
        )
    return rows[0] - FIRST_POSITION


def _table(side: str) -> str:
    return f"{side}.embed_tokens.weight"


def _rows(checkpoint: Checkpoint, name: str) -> int:
    return len(checkpoint.weights.get(name, ()))


def read_types(dictionary: Path, checkpoint: Checkpoint, side: str) -> list[str]:
    """Return a dictionary's types in the order of our indices; ``<s>`` is the first.

    Raises:
        UserError: a line is no type and count, or it is not the dictionary of this side.
    """
    types = ["<s>"]
    seen = set(types)
    for number, line in enumerate(read_lines(dictionary), start=1):
        token, _, count = line.rstrip().rpartition(" ")
        if not (token and count.isdecimal()):
            raise UserError(f"{dictionary}:{number}: expected 'TYPE COUNT', found {line[:60]!r}")
        if token in seen:
            raise UserError(f"{dictionary}:{number}: the type {token[:60]!r} for a second time")
        seen.add(token)
        types.append(token)
    rows = _rows(checkpoint, _table(side))
    stated = len(types) - 1
    if stated + FAIRSEQ_SPECIAL_TOKENS != rows:
        raise UserError(
            f"{dictionary}: has {stated} types, but the checkpoint's {side} knows "
            f"{rows - FAIRSEQ_SPECIAL_TOKENS}: give the dictionary that this model was trained with"
        )
    return types


def _languages(checkpoint: Checkpoint, name: str) -> dict[str, str]:
    stated = {side: checkpoint.arguments.get(f"{side}_lang") for side in ("source", "target")}
    if not all(isinstance(language, str) for language in stated.values()):
        raise UserError(f"{name}: does not state its languages: give --languages SOURCE TARGET")
    return {side: str(language) for side, language in stated.items()}
