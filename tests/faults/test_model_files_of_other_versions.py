"""Model files of other versions of this project, and with damaged tables."""

import json
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.torch import save_file

from convs2s.config.architecture import parse_architecture
from convs2s.data.shortlist import Shortlist
from convs2s.files.tensors import DIGEST, METADATA_KEY, load_tensors, save_tensors
from convs2s.model_file import load_model, load_weights, save_model
from convs2s.models.build import build_network
from tests.support.refusals import refusal, says


def test_a_model_file_of_another_format_is_refused(model: Path, tmp_path: Path) -> None:
    weights, fields = load_tensors(model)
    former = tmp_path / "model.safetensors"
    fields["codes"] = fields.pop("bpe_codes")  # as that format called them
    save_tensors(former, weights, {**fields, "format": "convs2s model 1"})
    message = refusal(load_model, former)
    says(message, str(former), "model 1", "model 3", "train or import the model again")


def test_only_a_model_of_the_format_without_a_digest_may_lack_it(
    model: Path, tmp_path: Path
) -> None:
    weights, _ = load_tensors(model)
    with safe_open(model, framework="pt") as stored:
        fields = json.loads(stored.metadata()[METADATA_KEY])
    del fields[DIGEST]
    other = tmp_path / "model.safetensors"
    save_file(weights, other, {METADATA_KEY: json.dumps(fields)})
    says(refusal(load_model, other), "model.safetensors: damaged", "digest")
    fields["format"] = "convs2s model 2"
    save_file(weights, other, {METADATA_KEY: json.dumps(fields)})
    assert load_model(other)[1] == load_model(model)[1]


def test_a_table_of_candidates_is_two_lists_of_whole_numbers(
    model: Path, tmp_path: Path
) -> None:
    _, description = load_model(model)
    selecting = {"vocabulary_selection": {"frequent": 1, "candidates": 1}}
    stated = description.architecture.model_dump() | selecting
    architecture = parse_architecture(stated)
    source, target = description.sizes
    candidates = np.full(source, 4, np.int32)
    shortlist = Shortlist(target, 1, np.arange(source + 1), candidates)
    fields = {"architecture": architecture, "shortlist": shortlist}
    described = description.model_copy(update=fields)
    path = tmp_path / "model.safetensors"
    save_model(
        path, build_network(architecture, source, target).state_dict(), described
    )
    assert load_model(path)[1] == load_weights(path)[1] == described
    weights, stored = load_tensors(path)
    offsets = weights["candidates.offsets"]
    for change in (
        {"candidates.offsets": offsets.float()},
        {"candidates.targets": weights["candidates.targets"].float()},
        {"candidates.offsets": offsets[1:, None]},
    ):
        save_tensors(path, weights | change, stored)
        says(refusal(load_weights, path), "candidates is damaged", "two lists of whole")
