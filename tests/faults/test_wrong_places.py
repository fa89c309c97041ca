"""A valid file in the wrong place is named, and never taken for the one that belongs there."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from convs2s.errors import UserError
from convs2s.files.checksums import check_noted, note_path
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.model_file import check_runs
from convs2s.pipeline.job import job
from convs2s.training.run import train
from tests.support import tiny

RUNS = {"small/seed1": 1, "small/seed2": 2, "longer/seed1": 1}
SETTINGS = {
    "small": tiny.settings(maximum_epochs=1),
    "longer": tiny.settings(maximum_epochs=2),
}


def train_run(results: Path, run: str) -> Path:
    """Train a run of the task, or export it again; return its model file."""
    model = results / f"tiny/models/{run}/model.safetensors"
    train(
        tiny.job(
            results / "tiny", model, SETTINGS[Path(run).parent.name], seed=RUNS[run]
        )
    )
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
def results(trained: Path, tmp_path: Path) -> Path:
    """A copy of them, which the test may change."""
    shutil.copytree(trained, tmp_path / "moved")
    return tmp_path / "moved"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("small/seed2", "is the model of seed 2; a file of another run was put here"),
        (
            "longer/seed1",
            r"belongs to another training than the one in training\.json beside it",
        ),
    ],
)
def test_the_model_of_another_run_is_not_decoded(
    results: Path, other: str, said: str
) -> None:
    models = {run: results / f"tiny/models/{run}/model.safetensors" for run in RUNS}
    check_runs(models.values())
    shutil.copy(models[other], models["small/seed1"])
    with pytest.raises(UserError, match=f"^{models['small/seed1']}: {said}"):
        check_runs(models.values())


def test_runs_that_were_exchanged_whole_are_not_decoded(results: Path) -> None:
    folders = [
        results / "tiny/models" / name for name in ("small/seed1", "longer/seed1")
    ]
    folders[0].rename(results / "kept")
    folders[1].rename(folders[0])
    with pytest.raises(
        UserError, match=r"seed1/training\.json: belongs to another place, as .*"
    ):
        check_runs([folders[0] / "model.safetensors"])


def test_the_model_of_another_task_is_not_decoded(results: Path) -> None:
    (results / "tiny").rename(results / "other")
    with pytest.raises(
        UserError, match="is the model of task tiny; a file of another run"
    ):
        check_runs([results / "other/models/small/seed1/model.safetensors"])


def test_another_seed_s_best_state_is_not_exported(results: Path) -> None:
    first, second = (results / f"tiny/models/small/seed{seed}" for seed in (1, 2))
    (best,), (other,) = (
        run.glob("state/*/best.safetensors") for run in (first, second)
    )
    (first / "model.safetensors").unlink()
    shutil.copy(other, best)
    with pytest.raises(
        UserError, match=f"^{best}: is a state of another training; put back"
    ):
        train_run(results, "small/seed1")
    assert not (first / "model.safetensors").exists()
    (best.parent / "last.safetensors").write_bytes(
        (other.parent / "last.safetensors").read_bytes()
    )
    with pytest.raises(
        UserError, match=r"last\.safetensors: is a state of another training"
    ):
        train_run(results, "small/seed1")


@pytest.mark.parametrize("change", ["epoch", "size"])
def test_a_state_of_before_has_the_epoch_and_the_network(
    results: Path, change: str
) -> None:
    (best,) = (results / "tiny/models/small/seed1").glob("state/*/best.safetensors")
    tensors, fields = load_tensors(best)
    del fields["training"]
    if change == "epoch":
        fields["epoch"] += 1
    else:
        tensors = {name: tensor[:1].clone() for name, tensor in tensors.items()}
    save_tensors(best, tensors, fields)
    said = {
        "epoch": "is a state of another epoch",
        "size": "not the network that it describes",
    }
    with pytest.raises(UserError, match=f"^{best}: {said[change]}"):
        train_run(results, "small/seed1")


def test_a_state_of_before_is_exported_to_the_same_bytes(results: Path) -> None:
    run = results / "tiny/models/small/seed1"
    before = (run / "model.safetensors").read_bytes()
    for state in run.glob("state/*/*.safetensors"):
        tensors, fields = load_tensors(state)
        del fields["training"]
        save_tensors(state, tensors, fields)
    (run / "model.safetensors").unlink()
    assert train_run(results, "small/seed1").read_bytes() == before


def write_codes(results: Path, task: str) -> Path:
    """Write BPE codes as a job of the workflow does."""
    codes = results / task / "vocabulary/codes"
    codes.parent.mkdir(parents=True)
    log = results / "logs" / task / "learn_bpe.log"
    with job(SimpleNamespace(log=[str(log)], input=[], output=[str(codes)])):
        codes.write_text(f"#version: 0.2\n{task[0]} {task[-1]}\n")
    return codes


def test_a_file_that_was_copied_with_its_note_is_told_from_its_own(
    tmp_path: Path,
) -> None:
    first, second = (
        write_codes(tmp_path / "results", task) for task in ("first", "second")
    )
    check_noted([first, second])
    for path in (first, note_path(first)):
        shutil.copy(path, second.with_name(path.name))
    said = rf"^{second}: belongs to another place, as \.codes\.sha256 beside .* note of first/vocab"
    with pytest.raises(UserError, match=said):
        check_noted([second])


def test_results_may_be_moved_renamed_and_linked(tmp_path: Path) -> None:
    codes = write_codes(tmp_path / "results", "first")
    (tmp_path / "results").rename(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept/first")
    check_noted(
        [tmp_path / "kept/first/vocabulary/codes", tmp_path / "link/vocabulary/codes"]
    )
    note = note_path(tmp_path / "kept/first/vocabulary/codes")
    assert json.dumps(note.read_text()).endswith('  first/vocabulary/codes\\n"')
    # As those of before.
    note.write_text(note.read_text().replace("first/vocabulary/", ""))
    check_noted([tmp_path / "kept/first/vocabulary" / codes.name])
