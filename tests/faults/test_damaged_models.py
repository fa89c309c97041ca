"""Models, states and stores that are damaged or another run's: refused, or the very same."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import save_file

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files import tensors
from convs2s.files.checksums import check_noted, note_path
from convs2s.files.tensors import METADATA_KEY, load_tensors, save_tensors
from convs2s.model_file import (
    check_runs,
    describe_model,
    load_model,
    load_weights,
)
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.pipeline.job import job
from convs2s.training.run import train
from tests.faults.campaign.samples import stand_in
from tests.support import tiny
from tests.support.archives import flipped
from tests.support.networks import TYPES, architecture_of, network
from tests.support.refusals import refusal, refuses, rows, says

RUNS = "small/seed1", "small/seed2", "longer/seed1"
TOKENS = "encoder.embedding.tokens"


def test_a_flipped_bit_in_a_store_ends_a_training(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model.with_name("task"), tmp_path / "task")
    store = tmp_path / "task/dataset/valid.arrow"
    content = store.read_bytes()
    place = content.index(b"\x05\x00\x00\x00\x01\x00\x00\x00")  # an index, then </s>
    store.write_bytes(flipped(content, 8 * place))
    one = tiny.job(tmp_path / "task", tmp_path / "run/model.safetensors")
    refuses("valid.arrow: damaged: its SHA-256", train, one)


DESCRIPTIONS = """
source_types: 5 => source_types: expected a list
languages: {source: en} => languages: key 'target' is missing
architecture: null => architecture: expected
architecture: {kind: lstm, cell: 3} => m: architecture: unknown key 'cell'; did you mean 'cells'?
unknown: 1 => unknown key 'unknown'
bpe_codes: [1] => bpe_codes:
preparation: '' => preparation:
int8_scales: {encoder.keys: 0.0} => int8_scales.encoder.keys:
{format: convs2s model 1, codes: ''} => model 1 ... model 3 ... train or import the model again
"""


def test_what_describes_no_model_is_named(model: Path, tmp_path: Path) -> None:
    weights, fields = load_tensors(model)
    for change, words in rows(DESCRIPTIONS):
        save_tensors(tmp_path / "m", weights, fields | yaml.safe_load(change))
        says(refusal(load_model, tmp_path / "m"), "m: ", words)


def test_weights_of_no_model_are_named(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other writers have it.
    monkeypatch.setitem(tensors._TYPES, "torch.complex64", "C64")
    weights, fields = load_tensors(model)
    sound = weights.pop(TOKENS)
    for odd, words in (
        ({TOKENS: sound * torch.nan}, "contains NaN or infinity"),
        ({TOKENS: sound.to(torch.complex64)}, "is complex64"),
        ({TOKENS: sound[:, :0]}, "was expected"),
        ({TOKENS: sound[0, 0]}, "do not match its weights"),
        ({}, "do not match its weights"),
    ):
        save_tensors(tmp_path / "m", weights | odd, fields)
        says(refusal(load_model, tmp_path / "m"), "m: ", words)


def test_weights_and_scales_that_cannot_translate_are_refused(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    save_tensors(path, {**weights, TOKENS: weights[TOKENS] * 3e38}, fields)
    translator = LineTranslator([path], DecodingSettings(), "cpu")
    message = refusal(list, translator.translate(["w1 w2"]))
    says(message, "m: finds no translation, because its scores are not finite")
    # Scales are read in int8 alone.
    del fields["int8_scales"]["decoder.blocks.0"]
    save_tensors(path, weights, fields)
    LineTranslator([path], DecodingSettings(), "cpu")
    message = refusal(LineTranslator, [path], DecodingSettings(precision="int8"), "cpu")
    says(message, "m: ", "no decoder.blocks.0 ... import ... --precision fp32")


BIAS = "decoder.out_projection.bias"


def test_weights_of_another_network_build_no_graph() -> None:
    arrays = {name: one.numpy() for name, one in network().state_dict().items()}
    bias = arrays.pop(BIAS)
    for name, given in (
        ("other", {BIAS: bias, "other": bias}),
        (BIAS, {BIAS: bias[1:]}),
        (BIAS, {BIAS: bias.astype(np.int32)}),
        (BIAS, {BIAS: bias + np.inf}),
        (BIAS, {}),
    ):
        weights = Weights(arrays | given, architecture_of(), (TYPES, TYPES))
        with pytest.raises(ValueError, match=name):
            OnnxEnsemble([weights], "fp32", "")


def test_other_writers_leave_out_the_digest_or_write_half_a_surrogate_pair(
    model: Path, tmp_path: Path
) -> None:
    """A model of the format without a digest may lack it."""
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    save_file(weights, path, {METADATA_KEY: json.dumps(fields)})
    refuses("m: damaged ... digest", load_model, path)
    fields["format"] = "convs2s model 2"
    save_file(weights, path, {METADATA_KEY: json.dumps(fields)})
    assert load_model(path)[1] == load_model(model)[1]
    fields["target_types"][7] = "a\ud800"
    save_file(weights, path, {METADATA_KEY: json.dumps(fields)})
    for read in (load_model, describe_model):
        refuses("m: contains half a surrogate pair", read, path)


def test_a_table_of_candidates_is_two_lists_of_whole_numbers(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    types = len(weights[TOKENS])
    fields["architecture"]["vocabulary_selection"] = {"frequent": 1, "candidates": 1}
    offsets = weights["candidates.offsets"] = torch.arange(types + 1)
    targets = weights["candidates.targets"] = torch.full((types,), 4, dtype=torch.int32)
    save_tensors(path, weights, fields)
    load_weights(path)
    for change in (
        {"candidates.offsets": offsets.float()},
        {"candidates.targets": targets.float()},
        {"candidates.offsets": offsets[1:, None]},
    ):
        save_tensors(path, weights | change, fields)
        refuses("candidates is damaged ... two lists of whole", load_weights, path)


def test_a_description_that_is_no_object(tmp_path: Path) -> None:
    damaged = "m: damaged: its description is not a JSON object: "
    for content, reason in (
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ("[]", "found a list"),
    ):
        save_file({}, tmp_path / "m", {METADATA_KEY: content})
        said = refusal(load_tensors, tmp_path / "m")
        says(said, damaged, reason, "; fetch or make the file again")


def test_keys_of_any_kind_have_a_digest(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", {}, {"numbers": {2: "a", 10: "b"}, "pair": (1, 2)})
    read = {"numbers": {"2": "a", "10": "b"}, "pair": [1, 2]}
    assert load_tensors(tmp_path / "x")[1] == read


# Sound files in the wrong place


def train_run(results: Path, run: str) -> Path:
    """Train a run of the task, or export it again; return its model file."""
    model = results / f"tiny/models/{run}/model.safetensors"
    given = tiny.settings(maximum_epochs=2 if run.startswith("longer") else 1)
    train(tiny.job(results / "tiny", model, given, seed=int(run[-1])))
    return model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of three trainings."""
    results = tmp_path_factory.mktemp("trained") / "results"
    tiny.prepare(results / "tiny")
    for run in RUNS:
        train_run(results, run)
    return results


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    """The runs of a copy of them, which the test may change."""
    shutil.copytree(trained, tmp_path / "moved")
    return tmp_path / "moved/tiny/models"


def test_models_and_folders_of_other_runs_are_not_decoded(runs: Path) -> None:
    models = [runs / run / "model.safetensors" for run in RUNS]
    first, second, longer = models
    check_runs(models)
    kept = first.rename(runs / "kept")
    shutil.copy(second, first)
    message = refusal(check_runs, models)
    says(message, f"{first}: is the model of seed 2; a file of another run was put")
    shutil.copy(longer, first)
    message = refusal(check_runs, models)
    says(message, f"{first}: belongs to another training than the one in training.js")
    kept.rename(first)
    first.parent.rename(runs / "exchanged")
    longer.parent.rename(first.parent)
    refuses(
        "seed1/training.json: belongs to another place, because ", check_runs, [first]
    )
    other = runs.parent.rename(runs.parents[1] / "other")
    message = refusal(check_runs, [other / "models/small/seed2/model.safetensors"])
    says(message, "is the model of task tiny; a file of another run")


STATES = """
best of another run => best.safetensors: is a state of another training; put back
last of another run => last.safetensors: is a state of another training
epoch => best.safetensors: is a state of another epoch
size => best.safetensors: not the network that it describes
"""


@pytest.mark.parametrize(("kind", "words"), rows(STATES))
def test_a_state_of_another_training_is_not_exported(
    runs: Path, kind: str, words: str
) -> None:
    (best,) = runs.glob("small/seed1/state/*/best.safetensors")
    weights, fields = load_tensors(best)
    del fields["training"]
    if kind.endswith("run"):
        name = f"{kind[:4]}.safetensors"
        (other,) = runs.glob(f"small/seed2/state/*/{name}")
        shutil.copy(other, best.with_name(name))
    elif kind == "epoch":
        fields["epoch"] += 1
        save_tensors(best, weights, fields)
    else:
        cut = {name: tensor[:1].clone() for name, tensor in weights.items()}
        save_tensors(best, cut, fields)
    model = runs / "small/seed1/model.safetensors"
    model.unlink()
    refuses(words, train_run, runs.parents[1], "small/seed1")
    assert not model.exists()


def test_a_state_of_before_is_exported_to_the_same_bytes(runs: Path) -> None:
    model = runs / "small/seed1/model.safetensors"
    before = model.read_bytes()
    states = list(runs.glob("small/seed1/state/*/*.safetensors"))
    assert states
    for state in states:
        weights, fields = load_tensors(state)
        del fields["training"]
        save_tensors(state, weights, fields)
    model.unlink()
    assert train_run(runs.parents[1], "small/seed1").read_bytes() == before


def write_codes(results: Path, task: str) -> Path:
    """Write BPE codes as a job of the workflow does."""
    codes = results / task / "vocabulary/codes"
    codes.parent.mkdir(parents=True)
    with job(stand_in(f"{results}/logs/{task}/learn_bpe.log", [], [codes])):
        codes.write_text(f"#version: 0.2\n{task[0]} {task[-1]}\n")
    return codes


def test_results_may_be_moved_renamed_and_linked_but_not_copied_over_others(
    tmp_path: Path,
) -> None:
    first = write_codes(tmp_path / "results", "first")
    second = write_codes(tmp_path / "results", "second")
    check_noted([first, second])
    for path in (first, note_path(first)):
        shutil.copy(path, second.with_name(path.name))
    message = refusal(check_noted, [second])
    says(message, f"{second}: belongs to another place, because .codes.sha256 ")
    kept = (tmp_path / "results").rename(tmp_path / "kept") / "first/vocabulary/codes"
    (tmp_path / "link").symlink_to(tmp_path / "kept/first")
    check_noted([kept, tmp_path / "link/vocabulary/codes"])
    note = note_path(kept)
    assert note.read_text().endswith("  first/vocabulary/codes\n")
    # As those of before.
    note.write_text(note.read_text().replace("first/vocabulary/", ""))
    check_noted([kept])
