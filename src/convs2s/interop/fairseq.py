"""Convert a model that fairseq trained to a model file of this package.

A fairseq model is a checkpoint with two dictionaries and, for most models, BPE codes. The two
packages number types and positions differently:

- In fairseq, ``<s>``, ``<pad>``, ``</s>`` and ``<unk>`` have the indices 0 to 3, and the types of
  the dictionary follow. Here ``<pad>``, ``</s>`` and ``<unk>`` have the indices 0 to 2. ``<s>`` is
  kept as an ordinary type with index 3, because fairseq's softmax gives it a probability.
- In fairseq, positions are numbered from the index of ``<pad>`` + 1, here from 0.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from convs2s.config.architecture import Architecture, parse_architecture
from convs2s.config.file_reference import LocalFiles, parse_file_reference
from convs2s.download.archives import open_member
from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import scratch_folder, writing
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines
from convs2s.interop.checkpoint import Checkpoint, evaluate, read_checkpoint
from convs2s.model_file import (
    ModelDescription,
    calibrated,
    check_weights,
    save_model,
)
from convs2s.models.build import build_network, shapes_alone
from convs2s.text.bpe import read_codes, types_of_other_codes

SETTINGS = (
    "encoder_layers",
    "decoder_layers",
    "decoder_attention",
    "decoder_embed_dim",
    "decoder_out_embed_dim",
    "dropout",
)
"""The settings of a checkpoint that describe its network. The weights show the rest."""

# A list of (width, kernel) or (width, kernel, residual), where 1 is the usual residual connection.
_LAYERS = TypeAdapter(list[tuple[int, int] | tuple[int, int, Literal[1]]])

FAIRSEQ_SPECIAL_TOKENS = 4
"""Number of fairseq's special tokens, and index of the first type of a dictionary."""

FIRST_POSITION = 2
"""fairseq's index of the first position."""

# Pattern of a part of our parameters' names -> fairseq's text in its place.
_NAMES = (
    (r"embedding\.tokens", "embed_tokens.weight"),
    (r"embedding\.positions", "embed_positions.weight"),
    (r"coder\.in_projection", "coder.fc1"),
    (r"coder\.out_projection", "coder.fc2"),
    (r"coder\.output\b", "coder.fc3"),
    (r"blocks\.(\d+)\.convolution", r"convolutions.\1"),
    (r"blocks\.(\d+)\.residual", r"projections.\1"),
    (r"blocks\.(\d+)\.attention", r"attention.\1"),
)
# Entries of a checkpoint that are not needed: the version of the layout, which the shapes show as
# well, and a copy of each convolution's weight, which some versions of fairseq stored by mistake
# (facebookresearch/fairseq issues 1903 and 1949).
_NO_PARAMETERS = re.compile(r"decoder\.version|.*\._linearized_weight")


@dataclass(frozen=True)
class FairseqFiles:
    """The files of a fairseq model.

    The dictionaries are fairseq's ``dict.LANGUAGE.txt``, with a type and its count on each line. A
    model over whole words has no BPE codes.
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
    """Convert a model that fairseq trained, and write it as a model file.

    Args:
        files: The files of the model.
        output: The model file to write.
        task: The name of the task for the model's description.
        languages: The language codes under ``source`` and ``target``. None takes them from the
            checkpoint.
        preparation: The name of the preparation that turns raw text into the words that the model
            reads, or that the BPE codes split.

    Raises:
        UserError: a file is missing, has another format, or does not belong to the others.
    """
    name = str(files.checkpoint)
    checkpoint = read_checkpoint(files.checkpoint)
    with failures_of_file(name, "not a network of fairseq's that is read here"):
        architecture = architecture_of(checkpoint, name)
        source_types = read_types(files.source_dictionary, checkpoint, "encoder")
        target_types = read_types(files.target_dictionary, checkpoint, "decoder")
        source_size = _rows(checkpoint, "encoder.embed_tokens.weight")
        target_size = _rows(checkpoint, "decoder.embed_tokens.weight")
        with shapes_alone():
            network = build_network(architecture, source_size, target_size)
        weights = convert(checkpoint.weights, network, name)
        check_weights(weights, network, name)
    if languages is None:
        languages = _languages(checkpoint, name)
    codes = None
    if files.bpe_codes is not None:
        codes = read_codes(files.bpe_codes)
        impossible_types = types_of_other_codes(codes, source_types)
        if impossible_types:
            raise UserError(
                f"{files.bpe_codes}: cannot have made the vocabulary in {files.source_dictionary} "
                f"({impossible_types} types): give the codes that the model was trained with"
            )
    elif any(token.endswith("@@") for token in source_types):
        raise UserError(
            f"{files.source_dictionary}: has parts of words (@@): give --bpe-codes"
        )
    description = ModelDescription(
        task=task,
        languages=dict(languages),
        preparation=preparation,
        architecture=architecture,
        source_types=source_types,
        target_types=target_types,
        bpe_codes=codes,
        training={
            "imported_from": "fairseq",
            "checkpoint_sha256": sha256(files.checkpoint),
            "parameters": sum(tensor.numel() for tensor in weights.values()),
        },
    )
    save_model(output, weights, calibrated(description, weights))


def _languages(checkpoint: Checkpoint, name: str) -> dict[str, str]:
    """Return the languages that the settings of a checkpoint state.

    Raises:
        UserError: a language is missing.
    """
    source = checkpoint.arguments.get("source_lang")
    target = checkpoint.arguments.get("target_lang")
    if not isinstance(source, str) or not isinstance(target, str):
        raise UserError(
            f"{name}: does not state its languages: give --languages SOURCE TARGET"
        )
    return {"source": source, "target": target}


def import_released(
    *,
    references: Mapping[str, str | None],
    files: LocalFiles,
    output: Path,
    task: str,
    languages: Mapping[str, str],
    preparation: str,
) -> None:
    """Convert the released model of a task, and write it as a model file; see `import_fairseq`.

    ``references`` is the section ``released`` of the task's configuration: the names of the files,
    which may be members of archives. ``files`` maps the location in each name to the local file.
    """
    with writing(output), scratch_folder(output.parent) as folder:
        # Copy the files first: a member of an archive can only be read from start to end, but torch
        # reads a checkpoint in any order.
        for key, reference in references.items():
            if not reference:
                continue
            parsed = parse_file_reference(reference)
            with (
                open_member(files[parsed.location], parsed.member) as stream,
                (folder / key).open("wb") as copy,
            ):
                shutil.copyfileobj(stream, copy)
        copies = FairseqFiles(
            checkpoint=folder / "model",
            source_dictionary=folder / "source_dictionary",
            target_dictionary=folder / "target_dictionary",
            bpe_codes=folder / "bpe_codes" if references.get("bpe_codes") else None,
        )
        try:
            import_fairseq(
                copies, output, task=task, languages=languages, preparation=preparation
            )
        except UserError as error:
            # The message names a temporary copy. Name the original file instead.
            message = str(error)
            for key, reference in references.items():
                message = message.replace(str(folder / key), str(reference))
            raise UserError(message) from None


def architecture_of(checkpoint: Checkpoint, name: str) -> Architecture:
    """Return the architecture of a checkpoint's network in the form of this package.

    Raises:
        UserError: it is not an fconv network, or it has a feature that networks of this package do
            not have. The message begins with ``name``.
    """
    arguments = checkpoint.arguments
    for setting in SETTINGS:
        if setting not in arguments:
            raise UserError(
                f"{name}: not an fconv network: its settings have no {setting!r}"
            )
    encoder = _layers(arguments, "encoder_layers", name)
    decoder = _layers(arguments, "decoder_layers", name)
    # The setting is a list with a value for each layer, or one value for all layers.
    attention = evaluate(arguments["decoder_attention"], f"{name}: decoder_attention")
    attends = attention if isinstance(attention, list) else [attention] * len(decoder)
    are_booleans = all(isinstance(attend, bool) for attend in attends)
    if len(attends) != len(decoder) or not are_booleans:
        raise UserError(
            f"{name}: decoder_attention: expected True or False for each of {len(decoder)} layers, "
            f"not {arguments['decoder_attention']}"
        )
    attending_layers = [
        number for number, attend in enumerate(attends, start=1) if attend
    ]
    source_rows = _rows(checkpoint, "encoder.embed_positions.weight")
    target_rows = _rows(checkpoint, "decoder.embed_positions.weight")
    if source_rows != target_rows:
        raise UserError(
            f"{name}: has {source_rows} source and {target_rows} target positions: a model here "
            "has as many on both sides"
        )
    settings = {
        "embedding": arguments["decoder_embed_dim"],
        "output_embedding": arguments["decoder_out_embed_dim"],
        "encoder": _stacks(encoder),
        "decoder": _stacks(decoder),
        "attention": "all" if all(attends) else attending_layers,
        "positions": {"maximum": source_rows - FIRST_POSITION},
        "dropout": arguments["dropout"],
        "gradient_scaling": "fairseq",
    }
    return parse_architecture(settings, name)


def _rows(checkpoint: Checkpoint, name: str) -> int:
    """Return the number of rows of a weight matrix, or 0 if the checkpoint does not have it."""
    table = checkpoint.weights.get(name)
    return 0 if table is None else len(table)


def _layers(
    arguments: Mapping[str, Any],
    key: str,
    name: str,
) -> list[tuple[int, int]]:
    """Return the width and the kernel width of each layer, the bottom layer first.

    ``key`` is the name of the setting that describes the layers.
    """
    layers = evaluate(arguments[key], f"{name}: {key}")
    try:
        validated = _LAYERS.validate_python(layers, strict=True)
    except ValidationError:
        raise UserError(
            f"{name}: {key}: expected a list of (width, kernel) or (width, kernel, 1), because "
            "layers without a residual connection, or with one over several layers, are not "
            f"supported; found {layers!r:.60}"
        ) from None
    return [(width, kernel) for width, kernel, *_ in validated]


def _stacks(layers: list[tuple[int, int]]) -> list[dict[str, int]]:
    """Return layers as the configuration describes them, as stacks of equal adjacent layers."""
    return [
        {"layers": len(list(equal_layers)), "width": width, "kernel": kernel}
        for (width, kernel), equal_layers in groupby(layers)
    ]


def read_types(
    dictionary: Path,
    checkpoint: Checkpoint,
    side: str,
) -> list[str]:
    """Return the types of a fairseq dictionary in the order of our indices, with ``<s>`` first.

    ``side`` is ``encoder`` or ``decoder``.

    Raises:
        UserError: a line is malformed or repeats a type, or the dictionary and the embeddings of
            the side differ in their number of types.
    """
    types = {"<s>": None}  # a dictionary is used as an ordered set
    for number, line in enumerate(read_lines(dictionary), start=1):
        token, _, count = line.rstrip().rpartition(" ")
        if not (token and count.isdecimal()):
            raise UserError(
                f"{dictionary}:{number}: expected 'TYPE COUNT', found {line[:60]!r}"
            )
        if token in types:
            raise UserError(
                f"{dictionary}:{number}: has the type {token[:60]!r} a second time"
            )
        types[token] = None
    rows = _rows(checkpoint, f"{side}.embed_tokens.weight")
    dictionary_types = len(types) - 1  # without <s>
    if dictionary_types + FAIRSEQ_SPECIAL_TOKENS != rows:
        raise UserError(
            f"{dictionary}: has {dictionary_types} types, but the checkpoint's {side} knows "
            f"{rows - FAIRSEQ_SPECIAL_TOKENS}: give the dictionary that this model was trained with"
        )
    return list(types)


def their_name(name: str) -> str:
    """Return fairseq's name for a parameter, given our name."""
    for ours, theirs in _NAMES:
        name = re.sub(ours, theirs, name)
    return name


def our_order(types: int) -> Tensor:
    """Return fairseq's index of each type, in the order of our indices.

    ``types`` is the number of types, with the special tokens.
    """
    # Our order is <pad>, </s>, <unk>, <s>.
    return torch.tensor([1, 2, 3, 0, *range(FAIRSEQ_SPECIAL_TOKENS, types)])


def to_our_layout(name: str, tensor: Tensor) -> Tensor:
    """Return a parameter of fairseq with the dimensions of our parameter ``name``."""
    if name.endswith("weight_g"):
        return tensor.flatten()
    if name.endswith("convolution.weight_v"):
        return tensor.permute(2, 0, 1)  # (k, inputs, outputs) -> (outputs, k, inputs)
    return tensor


def to_ours(name: str, tensor: Tensor) -> Tensor:
    """Return a parameter of fairseq, or its gradient, in the form of our parameter ``name``.

    The dimensions are those of our parameter, and the rows have our order of types and our numbers
    of positions.
    """
    tensor = to_our_layout(name, tensor)
    if name.endswith("positions"):
        return tensor[FIRST_POSITION:]
    if name.endswith("embedding.tokens") or name.startswith("decoder.output."):
        tensor = tensor[our_order(len(tensor))]
    return tensor


def upgraded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of any version of fairseq in the form of the current version.

    In the current version, all weights are normalized per output (weight normalization). Two cases
    are converted:

    - In the first version of the decoder, convolutions are normalized per kernel position.
    - An output layer that shares the target embeddings is not normalized.
    """
    result = {name: tensor.float() for name, tensor in weights.items()}
    for name in weights:
        module, _, parameter = name.rpartition(".")
        weight_v = result[name]
        weight_g = result.get(f"{module}.weight_g")
        # The weight_v of a convolution is (k, inputs, outputs).
        if parameter != "weight_v" or weight_g is None or weight_v.dim() != 3:
            continue
        # weight_g is (k, 1, 1) in the first version, and (1, 1, outputs) in the current one.
        if weight_g.shape == (len(weight_v), 1, 1):
            weight = weight_v * (weight_g / weight_v.norm(dim=(1, 2), keepdim=True))
            _, norms = _normalized(weight.permute(2, 0, 1))  # (outputs, k, inputs)
            result[name] = weight  # (k, inputs, outputs)
            result[f"{module}.weight_g"] = norms.view(1, 1, -1)
    shared = result.pop("decoder.fc3.weight", None)
    if shared is not None:
        weight_v, weight_g = _normalized(shared)
        result["decoder.fc3.weight_v"] = weight_v
        result["decoder.fc3.weight_g"] = weight_g
    return result


def _normalized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weight_v and weight_g of a weight whose first dimension is the outputs.

    weight_g is the norm of each output's weights, (outputs,). An output whose weights are all 0,
    such as that of ``<pad>``, gets a weight_g of 0 and a weight_v of ones. The network divides
    weight_v by its norm, which must not be 0.
    """
    rows = weight.flatten(1)  # (outputs, all else)
    weight_g = rows.norm(dim=1)
    is_zero = (weight_g == 0).unsqueeze(1)
    weight_v = torch.where(is_zero, torch.ones_like(rows), rows)
    return weight_v.view_as(weight), weight_g


def convert(
    weights: Mapping[str, Tensor],
    network: nn.Module,
    name: str,
) -> dict[str, Tensor]:
    """Return the weights of any version of fairseq under our names and in our layout.

    ``network`` is a network of this package with the same architecture. Only the names and shapes
    of its parameters are read.

    Raises:
        UserError: the names or shapes of the weights do not fit the network. The message begins
            with ``name``.
    """
    given = upgraded(weights)
    expected = {their_name(ours): ours for ours, _ in network.named_parameters()}
    only_in_one = sorted(given.keys() ^ expected.keys())
    for theirs in only_in_one:
        if not _NO_PARAMETERS.fullmatch(theirs):
            verb = "lacks" if theirs in expected else "has"
            raise UserError(
                f"{name}: not the network that its settings describe: it {verb} {theirs!r}; only "
                "fconv networks for translation are read"
            )
    converted = {
        ours: to_ours(ours, given[theirs]) for theirs, ours in expected.items()
    }
    for ours, parameter in network.named_parameters():
        if converted[ours].shape != parameter.shape:
            raise UserError(
                f"{name}: not the network that its settings describe: {their_name(ours)!r} makes "
                f"{tuple(converted[ours].shape)} where {tuple(parameter.shape)} was expected"
            )
    return converted
