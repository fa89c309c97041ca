"""Models that fairseq trained: from its checkpoint, dictionaries and BPE codes to a model file.

fairseq numbers ``<s>``, ``<pad>``, ``</s>``, ``<unk>`` 0 to 3 and its dictionary from 4 on, here
``<pad>``, ``</s>``, ``<unk>`` are 0 to 2. ``<s>`` is kept, as an ordinary type: fairseq's softmax
gives it its share. Positions count from fairseq's padding index + 1, and from 0 here.
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
from convs2s.model_file import ModelDescription, check_weights, save_model
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
"""What a checkpoint says of its network; the rest is seen in the weights."""

_LAYERS = TypeAdapter(list[tuple[int, int] | tuple[int, int, Literal[1]]])

FAIRSEQ_SPECIAL_TOKENS = 4
FIRST_POSITION = 2

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
# The version of the layout, which the shapes say as well, and a copy of each convolution's weight
# that some versions left behind (facebookresearch/fairseq issues 1903 and 1949).
_NO_PARAMETERS = re.compile(r"decoder\.version|.*\._linearized_weight")


@dataclass(frozen=True)
class FairseqFiles:
    """What makes up a model of fairseq's; without BPE codes it is one over whole words.

    The dictionaries are dict.LANGUAGE.txt, a type and its count a line.
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

    Its languages are those that the checkpoint states, unless others are given. ``preparation`` is
    the name of the recipe from raw text to the words that the codes split.

    Raises:
        UserError: a file is missing or something else, or they do not fit together.
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
        source = checkpoint.arguments.get("source_lang")
        target = checkpoint.arguments.get("target_lang")
        if not isinstance(source, str) or not isinstance(target, str):
            raise UserError(f"{name}: does not state its languages: give --languages SOURCE TARGET")
        languages = {"source": source, "target": target}
    codes = None if files.bpe_codes is None else read_codes(files.bpe_codes)
    strange = types_of_other_codes(codes, source_types) if codes else 0
    if strange:
        raise UserError(
            f"{files.bpe_codes}: makes no such vocabulary as {files.source_dictionary} ({strange} "
            "types): give the codes that the model was trained with"
        )
    if codes is None and any(token.endswith("@@") for token in source_types):
        raise UserError(f"{files.source_dictionary}: has parts of words (@@): give --bpe-codes")
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
    save_model(output, weights, description)


def import_released(
    *,
    references: Mapping[str, str | None],
    files: LocalFiles,
    output: Path,
    task: str,
    languages: Mapping[str, str],
    preparation: str,
) -> None:
    """Write the model file of a task's released model, as ``import_fairseq`` does.

    ``references`` is the task's section ``released``; ``files`` has the place of each location.
    """
    with writing(output), scratch_folder(output.parent) as folder:
        # Copies, as an archive is read from its start, and a checkpoint in any order.
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
            import_fairseq(copies, output, task=task, languages=languages, preparation=preparation)
        except UserError as error:  # which names copies that are gone by then
            message = str(error)
            for key, reference in references.items():
                message = message.replace(str(folder / key), str(reference))
            raise UserError(message) from None


def architecture_of(checkpoint: Checkpoint, name: str) -> Architecture:
    """Return the description of a checkpoint's network.

    Raises:
        UserError: it is no fconv network, or has what ConvS2S networks here do not have.
    """
    arguments = checkpoint.arguments
    for setting in SETTINGS:
        if setting not in arguments:
            raise UserError(f"{name}: not an fconv network: its settings have no {setting!r}")
    encoder = _layers(arguments, "encoder_layers", name)
    decoder = _layers(arguments, "decoder_layers", name)
    stated = evaluate(arguments["decoder_attention"], f"{name}: decoder_attention")
    attends = stated if isinstance(stated, list) else [stated] * len(decoder)
    are_told = all(isinstance(attend, bool) for attend in attends)
    if len(attends) != len(decoder) or not are_told:
        raise UserError(
            f"{name}: decoder_attention: expected True or False for each of {len(decoder)} layers, "
            f"not {arguments['decoder_attention']}"
        )
    attending = [number for number, attend in enumerate(attends, 1) if attend]
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
        "attention": "all" if all(attends) else attending,
        "positions": {"maximum": source_rows - FIRST_POSITION},
        "dropout": arguments["dropout"],
        "gradient_scaling": "fairseq",
    }
    return parse_architecture(settings, name)


def _rows(checkpoint: Checkpoint, name: str) -> int:
    """Return how many rows a table of weights has; 0 where there is none."""
    table = checkpoint.weights.get(name)
    return 0 if table is None else len(table)


def _layers(arguments: Mapping[str, Any], key: str, name: str) -> list[tuple[int, int]]:
    """Return the width and kernel of each layer, bottom first."""
    layers = evaluate(arguments[key], f"{name}: {key}")
    try:
        found = _LAYERS.validate_python(layers, strict=True)
    except ValidationError:
        raise UserError(
            f"{name}: {key}: expected a list of (width, kernel), or of (width, kernel, 1) where no "
            f"residual connection skips layers or is absent, not {layers!r:.60}"
        ) from None
    return [(layer[0], layer[1]) for layer in found]


def _stacks(layers: list[tuple[int, int]]) -> list[dict[str, int]]:
    """Return stacks of equal layers as the configuration states them."""
    stacks = []
    for (width, kernel), equal in groupby(layers):
        stacks.append({"layers": len(list(equal)), "width": width, "kernel": kernel})
    return stacks


def read_types(dictionary: Path, checkpoint: Checkpoint, side: str) -> list[str]:
    """Return a dictionary's types in the order of our indices; ``<s>`` is the first.

    Raises:
        UserError: a line is no type and count, or it is not this side's dictionary.
    """
    types = {"<s>": None}  # a set in order
    for number, line in enumerate(read_lines(dictionary), start=1):
        token, _, count = line.rstrip().rpartition(" ")
        if not (token and count.isdecimal()):
            raise UserError(f"{dictionary}:{number}: expected 'TYPE COUNT', found {line[:60]!r}")
        if token in types:
            raise UserError(f"{dictionary}:{number}: the type {token[:60]!r} for a second time")
        types[token] = None
    rows = _rows(checkpoint, f"{side}.embed_tokens.weight")
    stated = len(types) - 1
    if stated + FAIRSEQ_SPECIAL_TOKENS != rows:
        raise UserError(
            f"{dictionary}: has {stated} types, but the checkpoint's {side} knows "
            f"{rows - FAIRSEQ_SPECIAL_TOKENS}: give the dictionary that this model was trained with"
        )
    return list(types)


def their_name(name: str) -> str:
    """Return fairseq's name of one of our parameters."""
    for ours, theirs in _NAMES:
        name = re.sub(ours, theirs, name)
    return name


def our_order(types: int) -> Tensor:
    """Return, for each of our indices, fairseq's index of the same type."""
    return torch.tensor([1, 2, 3, 0, *range(FAIRSEQ_SPECIAL_TOKENS, types)])


def to_our_layout(name: str, tensor: Tensor) -> Tensor:
    """Bring a parameter of fairseq's into the order of dimensions of ours named ``name``."""
    if name.endswith("weight_g"):
        return tensor.flatten()
    if name.endswith("convolution.weight_v"):
        return tensor.permute(2, 0, 1)  # (k, inputs, outputs) -> (outputs, k, inputs)
    return tensor


def to_ours(name: str, tensor: Tensor) -> Tensor:
    """Bring a parameter of fairseq's, or its gradient, into our layout, order and numbering."""
    tensor = to_our_layout(name, tensor)
    if name.endswith("positions"):
        return tensor[FIRST_POSITION:]
    if name.endswith("embedding.tokens") or name.startswith("decoder.output."):
        tensor = tensor[our_order(len(tensor))]
    return tensor


def upgraded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights as today's fairseq has them: each map normalized over its outputs.

    Changed are convolutions of the decoder's first version, normalized over the kernel's places,
    and an output layer that shares the target embeddings, which is not normalized at all.
    """
    result = {name: tensor.float() for name, tensor in weights.items()}
    for name in weights:
        module, _, part = name.rpartition(".")
        weight_v = result[name]  # of a convolution (k, inputs, outputs)
        weight_g = result.get(f"{module}.weight_g")
        if part != "weight_v" or weight_g is None or weight_v.dim() != 3:
            continue
        if weight_g.shape == (len(weight_v), 1, 1):  # k; today's is (1, 1, outputs)
            weight = weight_v * (weight_g / weight_v.norm(dim=(1, 2), keepdim=True))
            _, norms = _normalized(weight.permute(2, 0, 1))
            result[name] = weight
            result[f"{module}.weight_g"] = norms.view(1, 1, -1)
    shared = result.pop("decoder.fc3.weight", None)
    if shared is not None:
        weight_v, weight_g = _normalized(shared)
        result["decoder.fc3.weight_v"] = weight_v
        result["decoder.fc3.weight_g"] = weight_g
    return result


def _normalized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight_v and weight_g, the norm of each output's weights, that make up a weight.

    An output without weights (padding's) gets any weight_v and the weight_g 0.
    """
    rows = weight.flatten(1)  # (outputs, all else)
    weight_g = rows.norm(dim=1)
    is_zero = (weight_g == 0).unsqueeze(1)
    weight_v = torch.where(is_zero, torch.ones_like(rows), rows)
    return weight_v.view_as(weight), weight_g


def convert(weights: Mapping[str, Tensor], network: nn.Module, name: str) -> dict[str, Tensor]:
    """Return fairseq's weights, of any version, under our names and in our layout.

    The network has the same architecture; its own weights are not read.

    Raises:
        UserError: the weights are not those of such a network; its message begins with ``name``.
    """
    given = upgraded(weights)
    expected = {their_name(ours): ours for ours, _ in network.named_parameters()}
    for theirs in sorted(given.keys() ^ expected.keys()):
        if not _NO_PARAMETERS.fullmatch(theirs):
            has = "lacks" if theirs in expected else "has"
            raise UserError(
                f"{name}: not the network that its settings describe: it {has} {theirs!r}; only "
                "fconv networks for translation are read"
            )
    converted = {ours: to_ours(ours, given[theirs]) for theirs, ours in expected.items()}
    for ours, parameter in network.named_parameters():
        if converted[ours].shape != parameter.shape:
            raise UserError(
                f"{name}: not the network that its settings describe: {their_name(ours)!r} makes "
                f"{tuple(converted[ours].shape)} where {tuple(parameter.shape)} was expected"
            )
    return converted
