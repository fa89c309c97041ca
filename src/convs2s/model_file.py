"""A model is one file: weights and everything that turns raw text into text again."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.config.architecture import Architecture, parse_architecture
from convs2s.data.shortlist import Shortlist
from convs2s.data.vocabulary import Vocabulary
from convs2s.errors import UserError
from convs2s.models.build import build_network
from convs2s.models.network import EMBEDDING_TABLES, Network
from convs2s.tensor_file import load_description, load_tensors, save_tensors

FORMAT = "convs2s model 3"

WITHOUT_DIGEST = "convs2s model 2"
"""The former format, which is read as well: it lacks the digest alone."""

CANDIDATE_TENSORS = "candidates.offsets", "candidates.targets"
"""Tensors of a model that selects its vocabulary: the two arrays of its table of candidates."""


@dataclass(frozen=True)
class ModelDescription:
    """What a model file says of its weights. No times, hosts or resume counts: bytes are stable.

    Attributes:
        task: name of the task that it was trained for.
        languages: {"source": "en", "target": "fr"}.
        preparation: name of the recipe from raw text to tokens (``convs2s.text.preparation``).
        architecture: the network.
        source_types: types of the source vocabulary in the order of their indices.
        target_types: likewise of the target.
        bpe_codes: BPE codes, or None for a word model.
        training: where the weights come from: a training's summary (seed, epochs, updates,
            validation perplexity), its identity (recipe, checksums of its data, version of
            training) and the sources of its text; or what they were imported from.
        glossaries: patterns that BPE never splits.
        splittable: the source tokens that BPE may leave (vocabulary threshold), or None for all.
        dictionary: source word -> target word, for unknown-word replacement.
        shortlist: which target types are scored for a sentence, or None for all.
        truecasers: language -> the words of its truecaser (``convs2s.text.truecase``); empty where
            the model reads words in the case that they have.
    """

    task: str
    languages: dict[str, str]
    preparation: str
    architecture: Architecture
    source_types: list[str]
    target_types: list[str]
    bpe_codes: str | None
    training: Mapping[str, object]
    glossaries: list[str] = field(default_factory=list)
    splittable: list[str] | None = None
    dictionary: dict[str, str] = field(default_factory=dict)
    shortlist: Shortlist | None = None
    truecasers: dict[str, list[str]] = field(default_factory=dict)

    def source_vocabulary(self) -> Vocabulary:
        """Return the source vocabulary."""
        return Vocabulary(self.source_types)

    def target_vocabulary(self) -> Vocabulary:
        """Return the target vocabulary."""
        return Vocabulary(self.target_types)


def save_model(path: Path, weights: Mapping[str, Tensor], description: ModelDescription) -> None:
    """Write a model file."""
    fields = {one.name: getattr(description, one.name) for one in dataclasses.fields(description)}
    del fields["shortlist"]
    fields["architecture"] = description.architecture.model_dump(mode="json")
    tensors = dict(weights)
    if description.shortlist is not None:
        arrays = description.shortlist.offsets, description.shortlist.candidates
        tensors |= {
            name: torch.from_numpy(one) for name, one in zip(CANDIDATE_TENSORS, arrays, strict=True)
        }
    save_tensors(path, tensors, {"format": FORMAT, **fields})


def load_model(path: Path, device: str = "cpu") -> tuple[Network, ModelDescription]:
    """Read a model file.

    Raises:
        UserError: the file is missing, is no model, or its vocabularies do not match its weights.
    """
    weights, fields = load_tensors(path, device)
    description = _description(path, fields)
    architecture = description.architecture
    sizes = len(description.source_vocabulary()), len(description.target_vocabulary())
    selects = architecture.vocabulary_selection
    if selects is not None:
        arrays = (weights.pop(name).cpu().numpy() for name in CANDIDATE_TENSORS)
        shortlist = Shortlist(sizes[1], selects.frequent, *arrays)
        description = replace(description, shortlist=shortlist)
    tables = [weights[EMBEDDING_TABLES[side]] for side in ("source", "target")]
    if sizes != tuple(map(len, tables)):
        raise UserError(
            f"{path}: its vocabularies ({sizes[0]} and {sizes[1]} types) do not match its weights "
            f"({len(tables[0])} and {len(tables[1])})"
        )
    model = build_network(architecture, *sizes).to(device)
    model.load_state_dict(weights)
    return model.eval(), description


def describe_model(path: Path) -> ModelDescription:
    """Read what a model file says of its weights, without them: it has no table of candidates.

    Raises:
        UserError: the file is missing, or is no model.
    """
    return _description(path, load_description(path))


def _description(path: Path, fields: dict[str, Any]) -> ModelDescription:
    stated = fields.pop("format", None)
    if stated not in (FORMAT, WITHOUT_DIGEST):
        raise UserError(
            f"{path}: a model file of another version ({stated}; this one reads {FORMAT}): train "
            "or import the model again"
        )
    architecture = parse_architecture(fields.pop("architecture"), str(path))
    return ModelDescription(architecture=architecture, **fields)
