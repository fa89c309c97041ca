"""A model is one file: weights and everything that turns raw text into text again."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from convs2s.config.architecture import Architecture, parse_architecture
from convs2s.config.corpus import PREPARATIONS, PreparationName
from convs2s.config.extensions import check_added
from convs2s.config.messages import validated
from convs2s.config.runs import SEED_PATTERN
from convs2s.config.section import Section
from convs2s.data.shortlist import Shortlist
from convs2s.data.vocabulary import Vocabulary
from convs2s.errors import UserError, failures_of_file
from convs2s.files.checksums import check_noted
from convs2s.files.tensors import (
    WITHOUT_DIGEST,
    Fields,
    load_arrays,
    load_description,
    load_tensors,
    save_tensors,
)
from convs2s.text.bpe import check_codes

if TYPE_CHECKING:
    from torch import Tensor

    from convs2s.models.network import Network

FORMAT = "convs2s model 3"

EMBEDDING_TABLES = {"source": "encoder.embedding.tokens", "target": "decoder.embedding.tokens"}
"""The weights of every network that have a row for each type of a side's vocabulary."""

# Tensors of a model that selects its vocabulary: the two arrays of its table of candidates.
CANDIDATE_OFFSETS = "candidates.offsets"
CANDIDATE_TARGETS = "candidates.targets"


class _Languages(Section):
    """Of an imported model they are whatever its files say."""

    source: str
    target: str


class _Fields(Section):
    """The fields of a `ModelDescription` as a model file states them, without the network."""

    task: str
    languages: _Languages
    preparation: PreparationName
    source_types: list[str]
    target_types: list[str]
    bpe_codes: str | None
    training: dict[str, object]
    glossaries: list[str] = Field(default_factory=list)
    splittable: list[str] | None = None
    dictionary: dict[str, str] = Field(default_factory=dict)
    truecasers: dict[str, list[str]] = Field(default_factory=dict)


@dataclass(frozen=True)
class ModelDescription:
    """What a model file says of its weights. No times, hosts or resume counts: bytes are stable."""

    task: str  # that it was trained for
    languages: dict[str, str]  # {"source": "en", "target": "fr"}
    preparation: str  # the recipe from raw text to tokens (``convs2s.text.preparation``)
    architecture: Architecture
    source_types: list[str]  # of the source vocabulary, in the order of their indices
    target_types: list[str]
    bpe_codes: str | None  # None for a word model
    # Where the weights come from: a training's summary (seed, epochs, updates, validation
    # perplexity), its identity (recipe, checksums of its data, version of training) and the sources
    # of its text; or what they were imported from.
    training: Mapping[str, object]
    glossaries: list[str] = field(default_factory=list)  # patterns that BPE never splits
    # the source tokens that BPE may leave (vocabulary threshold), or None for all
    splittable: list[str] | None = None
    # source word -> target word, for unknown-word replacement
    dictionary: dict[str, str] = field(default_factory=dict)
    shortlist: Shortlist | None = None  # the target types scored for a sentence, None for all
    # language -> the words of its truecaser (``convs2s.text.truecase``); empty where the model
    # reads words in the case that they have
    truecasers: dict[str, list[str]] = field(default_factory=dict)

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the source vocabulary and the target vocabulary."""
        return Vocabulary(self.source_types), Vocabulary(self.target_types)

    @property
    def sizes(self) -> tuple[int, int]:
        """The types of both vocabularies."""
        source, target = self.vocabularies()
        return len(source), len(target)


def save_model(path: Path, weights: Mapping[str, "Tensor"], description: ModelDescription) -> None:
    """Write a model file."""
    import torch

    fields = dict(vars(description))
    fields["format"] = FORMAT
    fields["architecture"] = description.architecture.model_dump(mode="json")
    del fields["shortlist"]
    tensors = dict(weights)
    if description.shortlist is not None:
        tensors[CANDIDATE_OFFSETS] = torch.from_numpy(description.shortlist.offsets)
        tensors[CANDIDATE_TARGETS] = torch.from_numpy(description.shortlist.candidates)
    save_tensors(path, tensors, fields)


def load_weights(path: Path) -> tuple[dict[str, NDArray[Any]], ModelDescription]:
    """Read a model file without torch, as ``load_model`` does; its network is not checked."""
    weights, fields = load_arrays(path)
    return weights, _described(path, weights, fields)


def load_model(path: Path, device: str = "cpu") -> tuple["Network", ModelDescription]:
    """Read a model file.

    Raises:
        UserError: it is missing, no model, or its vocabularies do not match its weights.
    """
    from torch import nn

    from convs2s.models.build import build_network, shapes_alone

    weights, fields = load_tensors(path)
    description = _described(path, weights, fields)
    with shapes_alone():  # what a file states takes no memory until it is there
        model = build_network(description.architecture, *description.sizes)
    check_weights(weights, model, str(path))
    own = {}
    for name, tensor in model.state_dict().items():
        # Copies: what safetensors returns is the file, which another process may write anew.
        own[name] = weights[name].to(device, tensor.dtype, copy=True)
    model.load_state_dict(own, assign=True)
    for layer in model.modules():
        if isinstance(layer, nn.RNNBase):  # a GPU would copy its weights at every step otherwise
            layer.flatten_parameters()
    return model.eval(), description


def _described(path: Path, weights: Fields, fields: Fields) -> ModelDescription:
    """Return the description of tensors or arrays; what is not the network's is taken out."""
    description = _description(path, fields)
    selection = description.architecture.selection
    if selection is not None:
        shortlist = _shortlist(path, weights, description.sizes, selection.frequent)
        description = replace(description, shortlist=shortlist)
    rows = []
    for name in EMBEDDING_TABLES.values():
        table = weights.get(name)
        rows.append(len(table) if table is not None and table.ndim else 0)
    source, target = description.sizes
    if [source, target] != rows:
        raise UserError(
            f"{path}: its vocabularies ({source} and {target} types) do not match its weights "
            f"({rows[0]} and {rows[1]})"
        )
    return description


def _shortlist(
    path: Path,
    weights: Fields,
    sizes: tuple[int, int],
    frequent: int,
) -> Shortlist:
    """Take the table of candidates out of the tensors or arrays of a model."""
    source, target = sizes
    damaged = "its table of candidates is damaged"
    with failures_of_file(str(path), damaged):
        offsets = np.asarray(weights.pop(CANDIDATE_OFFSETS))
        candidates = np.asarray(weights.pop(CANDIDATE_TARGETS))
        are_lists = offsets.ndim == 1 and candidates.ndim == 1
        are_whole_numbers = offsets.dtype == np.int64 and candidates.dtype == np.int32
        if not (are_lists and are_whole_numbers):
            raise UserError(f"{path}: {damaged}: expected two lists of whole numbers")
        has_each_type = len(offsets) == source + 1
        is_whole = offsets[0] == 0 and offsets[-1] == len(candidates)
        is_in_order = np.diff(offsets).min(initial=0) >= 0
        if not (has_each_type and is_whole and is_in_order):
            raise UserError(f"{path}: {damaged}: its offsets are not those of {source} types")
        if candidates.min(initial=0) < 0 or candidates.max(initial=0) >= target:
            raise UserError(f"{path}: {damaged}: it names a type outside of the vocabulary")
    return Shortlist(target, frequent, offsets, candidates)


def check_weights(weights: Mapping[str, "Tensor"], network: "Network", name: str) -> None:
    """Check that weights are those of a network, whose own are not read, and numbers.

    Raises:
        UserError: one is missing, left over, of another form or not finite; the message begins with
            ``name``.
    """
    import torch

    expected = network.state_dict()
    for weight in sorted(weights.keys() ^ expected.keys()):
        verb = "lacks" if weight in expected else "has"
        raise UserError(f"{name}: not the network that it describes: it {verb} {weight!r}")
    for weight, tensor in weights.items():
        if tensor.shape != expected[weight].shape or not tensor.is_floating_point():
            raise UserError(
                f"{name}: not the network that it describes: {weight!r} is {_shown(tensor)}, "
                f"{_shown(expected[weight])} was expected"
            )
        if not torch.isfinite(tensor).all():
            raise UserError(f"{name}: {weight!r} holds what is not a finite number: train it again")


def _shown(tensor: "Tensor") -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def describe_model(path: Path) -> ModelDescription:
    """Read what a model file says of its weights, without them: it has no table of candidates.

    Raises:
        UserError: the file is missing, or is no model.
    """
    return _description(path, load_description(path))


def check_runs(paths: Iterable[str | Path]) -> None:
    """Check that each model file among these is of the run in whose folder it lies.

    The folder says of which task and seed it is (`layout.TaskFolder.run`), the record of a training
    beside it, by which recipe and of which data.

    Raises:
        UserError: a file is another run's, or the record is damaged or another's.
    """
    for stated in paths:
        path = Path(stated).absolute()
        if path.suffix != ".safetensors":
            continue
        model = describe_model(path)
        run = path.parent
        if model.task != run.parents[2].name:
            raise _of_another_run(path, f"task {model.task}")
        seed = re.fullmatch(f"seed({SEED_PATTERN})", run.name)
        own = model.training.get("seed")
        if seed and int(seed[1]) != own:
            raise _of_another_run(path, f"seed {own}")
        record = path.with_name("training.json")
        if record.is_file():
            check_noted([record])
            if recorded_identity(record) != model.training.get("identity"):
                raise _of_another_run(path, "another training than training.json beside it")


def _of_another_run(path: Path, whose: str) -> UserError:
    return UserError(
        f"{path}: is the model of {whose}: a file of another run was put here, or its task has "
        "another name now: put back the file or the name; a new name begins in a folder of its own"
    )


def recorded_identity(record: Path) -> Mapping[str, object]:
    """Return the identity in ``training.json``.

    Raises:
        UserError: the file is damaged.
    """
    with failures_of_file(str(record), "no record of a training"):
        stated = json.loads(record.read_bytes())
        identity: Mapping[str, object] = stated["manifest"]["identity"]
        return identity


def _description(path: Path, fields: Fields) -> ModelDescription:
    stated = fields.pop("format", None)
    if stated not in (FORMAT, WITHOUT_DIGEST):
        raise UserError(
            f"{path}: a model file of another version ({stated}; this one reads {FORMAT}): train "
            "or import the model again"
        )
    architecture = parse_architecture(fields.pop("architecture", None), str(path))
    stated_fields = validated(_Fields, fields, str(path)).model_dump()
    check_added(str(path), "PREPARATIONS", stated_fields["preparation"], PREPARATIONS)
    if stated_fields["bpe_codes"] is not None:
        check_codes(stated_fields["bpe_codes"], f"{path}: bpe_codes, line ")
    for side in ("source_types", "target_types"):
        types = stated_fields[side]
        if len(set(types)) != len(types):
            raise UserError(f"{path}: {side}: a vocabulary holds a type twice")
    return ModelDescription(architecture=architecture, **stated_fields)
