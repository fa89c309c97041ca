"""Models, states and stores that are damaged or another run's: refused, or the very same."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import LineTranslator
from convs2s.files import tensors
from convs2s.files.checksums import check_noted, note_path
from convs2s.files.tensors import METADATA_KEY, load_tensors, save_tensors
from convs2s.model_file import check_runs, describe_model, load_model
from convs2s.pipeline.job import job
from convs2s.training.run import train
from tests.support import tiny
from tests.support.damage import flipped
from tests.support.refusals import refusal, says

RUNS = {"small/seed1": 1, "small/seed2": 2, "longer/seed1": 1}
SETTINGS = {
    "small": tiny.settings(maximum_epochs=1),
    "longer": tiny.settings(maximum_epochs=2),
}
TOKENS = "encoder.embedding.tokens"


def test_a_flipped_weight_is_named_damage(model: Path, tmp_path: Path) -> None:
    content = model.read_bytes()
    (tmp_path / "m").write_bytes(flipped(content, 8 * len(content) - 4))
    says(refusal(load_model, tmp_path / "m"), "m: damaged: its content does not match")


@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_flipped_bit_in_a_store_ends_a_training(
    model: Path, tmp_path: Path, split: str
) -> None:
    shutil.copytree(model.with_name("task"), tmp_path / "task")
    store = tmp_path / f"task/dataset/{split}.arrow"
    content = store.read_bytes()
    place = content.index(b"\x05\x00\x00\x00\x01\x00\x00\x00")  # an index, then </s>
    store.write_bytes(flipped(content, 8 * place))
    one = tiny.job(tmp_path / "task", tmp_path / "run/model.safetensors")
    says(refusal(train, one), f"{split}.arrow: damaged: its SHA-256")


@pytest.mark.parametrize(
    ("change", "weights", "word"),
    [
        ({"source_types": 5}, None, "source_types: expected a list"),
        ({"languages": {"source": "en"}}, None, "languages: key 'target' is missing"),
        ({"architecture": None}, None, "architecture: expected"),
        ({"unknown": 1}, None, "unknown key 'unknown'"),
        ({"bpe_codes": [1]}, None, "bpe_codes: "),
        ({"preparation": ""}, None, "preparation: "),
        ({"int8_scales": {"encoder.keys": 0.0}}, None, "int8_scales.encoder.keys: "),
        ({}, lambda one: one * torch.nan, "contains NaN or infinity"),
        ({}, lambda one: one.to(torch.complex64), "is complex64"),
        ({}, lambda one: one[:, :0], "was expected"),
        ({}, lambda one: one[0, 0], "do not match its weights"),
    ],
)
def test_what_describes_no_model_is_named(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    weights: Callable[[torch.Tensor], torch.Tensor] | None,
    word: str,
) -> None:
    # Other writers have it.
    monkeypatch.setitem(tensors._TYPES, "torch.complex64", "C64")
    found, fields = load_tensors(model)
    if weights is not None:
        found[TOKENS] = weights(found[TOKENS])
    save_tensors(tmp_path / "m", found, {**fields, **change})
    says(refusal(load_model, tmp_path / "m"), "m: ", word)


def test_weights_that_cannot_translate_are_refused(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    save_tensors(path, {**weights, TOKENS: weights[TOKENS] * 3e38}, fields)
    translator = LineTranslator([path], DecodingSettings(), "cpu")
    message = refusal(list, translator.translate(["w1 w2"]))
    says(message, "m: finds no translation, because its scores are not finite")
    del weights[TOKENS]
    save_tensors(path, weights, fields)
    says(refusal(load_model, path), "do not match its weights")


def test_scales_of_another_network_are_refused(model: Path, tmp_path: Path) -> None:
    """In int8: the others do not read them."""
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    del fields["int8_scales"]["decoder.blocks.0"]
    save_tensors(path, weights, fields)
    LineTranslator([path], DecodingSettings(), "cpu")
    message = refusal(LineTranslator, [path], DecodingSettings(precision="int8"), "cpu")
    says(message, "m: ", "no decoder.blocks.0", "import", "--precision fp32")


def test_half_a_surrogate_pair_is_no_type(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "m"
    weights, fields = load_tensors(model)
    fields["target_types"][7] = "a\ud800"
    save_file(weights, path, {METADATA_KEY: json.dumps(fields)})
    for read in (load_model, describe_model):
        says(refusal(read, path), "m: contains half a surrogate pair")
    save_tensors(path, {}, {"word": "a"})
    path.write_bytes(path.read_bytes().replace(b'\\"a\\"', b'\\"\\\\ud800\\"'))
    refusal(load_tensors, path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ("[]", "found a list"),
    ],
)
def test_a_description_that_is_no_object(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "m"
    save_file({}, path, {METADATA_KEY: content})
    damaged = "m: damaged: its description is not a JSON object: "
    says(refusal(load_tensors, path), damaged, reason, "; fetch or make the file again")


def test_keys_of_any_kind_have_a_digest(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x", {}, {"numbers": {2: "a", 10: "b"}, "pair": (1, 2)})
    read = {"numbers": {"2": "a", "10": "b"}, "pair": [1, 2]}
    assert load_tensors(tmp_path / "x")[1] == read


# Sound files in the wrong place


def train_run(results: Path, run: str) -> Path:
    """Train a run of the task, or export it again; return its model file."""
    model = results / f"tiny/models/{run}/model.safetensors"
    settings = SETTINGS[Path(run).parent.name]
    train(tiny.job(results / "tiny", model, settings, seed=RUNS[run]))
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


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ("small/seed2", "is the model of seed 2; a file of another run was put here"),
        ("longer/seed1", "belongs to another training than the one in training.json"),
    ],
)
def test_the_model_of_another_run_is_not_decoded(
    runs: Path, other: str, word: str
) -> None:
    models = [runs / run / "model.safetensors" for run in RUNS]
    check_runs(models)
    shutil.copy(runs / other / "model.safetensors", models[0])
    says(refusal(check_runs, models), f"{models[0]}: {word}")


def test_runs_and_tasks_that_were_exchanged_whole_are_not_decoded(runs: Path) -> None:
    first = runs / "small/seed1"
    first.rename(runs / "kept")
    (runs / "longer/seed1").rename(first)
    message = refusal(check_runs, [first / "model.safetensors"])
    says(message, "seed1/training.json: belongs to another place, because ")
    tiny_results = runs.parent
    other = tiny_results.rename(tiny_results.with_name("other"))
    message = refusal(check_runs, [other / "models/small/seed2/model.safetensors"])
    says(message, "is the model of task tiny; a file of another run")


def other_run(best: Path) -> None:
    (other,) = best.parents[3].glob("seed2/state/*/best.safetensors")
    shutil.copy(other, best)


def other_run_s_last(best: Path) -> None:
    (other,) = best.parents[3].glob("seed2/state/*/last.safetensors")
    shutil.copy(other, best.with_name("last.safetensors"))


def other_epoch(best: Path) -> None:
    weights, fields = load_tensors(best)
    del fields["training"]
    save_tensors(best, weights, {**fields, "epoch": fields["epoch"] + 1})


def other_size(best: Path) -> None:
    weights, fields = load_tensors(best)
    del fields["training"]
    cut = {name: tensor[:1].clone() for name, tensor in weights.items()}
    save_tensors(best, cut, fields)


def flipped_bit(best: Path) -> None:
    best.write_bytes(flipped(best.read_bytes(), 8 * best.stat().st_size - 4))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (other_run, "best.safetensors: is a state of another training; put back"),
        (other_run_s_last, "last.safetensors: is a state of another training"),
        (other_epoch, "best.safetensors: is a state of another epoch"),
        (other_size, "best.safetensors: not the network that it describes"),
        (flipped_bit, "best.safetensors: damaged"),
    ],
)
def test_a_state_of_another_training_is_not_exported(
    runs: Path, change: Callable[[Path], None], word: str
) -> None:
    (best,) = runs.glob("small/seed1/state/*/best.safetensors")
    change(best)
    model = runs / "small/seed1/model.safetensors"
    model.unlink()
    says(refusal(train_run, runs.parents[1], "small/seed1"), word)
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
    log = str(results / "logs" / task / "learn_bpe.log")
    with job(SimpleNamespace(log=[log], input=[], output=[str(codes)], params={})):
        codes.write_text(f"#version: 0.2\n{task[0]} {task[-1]}\n")
    return codes


def test_a_file_that_was_copied_with_its_note_is_told_from_its_own(
    tmp_path: Path,
) -> None:
    first = write_codes(tmp_path / "results", "first")
    second = write_codes(tmp_path / "results", "second")
    check_noted([first, second])
    for path in (first, note_path(first)):
        shutil.copy(path, second.with_name(path.name))
    message = refusal(check_noted, [second])
    says(message, f"{second}: belongs to another place, because .codes.sha256 ")


def test_results_may_be_moved_renamed_and_linked(tmp_path: Path) -> None:
    write_codes(tmp_path / "results", "first")
    kept = (tmp_path / "results").rename(tmp_path / "kept") / "first/vocabulary/codes"
    (tmp_path / "link").symlink_to(tmp_path / "kept/first")
    check_noted([kept, tmp_path / "link/vocabulary/codes"])
    note = note_path(kept)
    assert note.read_text().endswith("  first/vocabulary/codes\n")
    # As those of before.
    note.write_text(note.read_text().replace("first/vocabulary/", ""))
    check_noted([kept])
