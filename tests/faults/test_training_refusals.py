"""What a training refuses: models that it cannot start from, data, kernels, folders and workers."""

import fcntl
import resource
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
import yaml

from convs2s.data.store import TokenStore
from convs2s.errors import UnfinishedError
from convs2s.model_file import load_model, save_model
from convs2s.models.kernels import matmul
from convs2s.training.launch import launch
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from tests.faults.limits import files_of_at_most, without_locks
from tests.support import tiny
from tests.support.refusals import refusal, refuses, rows, says


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out" / "model.safetensors"


@pytest.fixture(scope="module")
def start(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "model.safetensors"
    train(tiny.job(task, path, tiny.settings(maximum_epochs=2, learning_rate=0.05)))
    return path


def begun(start: Path, mode: str = "initialise") -> dict[str, Any]:
    """Return the recipe of a training that begins with a model."""
    return {"start": {"from": str(start), "as": mode}, "maximum_epochs": 4}


def refused(
    task: Path, output: Path, network: dict[str, Any] | None = None, **recipe: Any
) -> str:
    """Return what a training says that does not begin, or that ends."""
    return refusal(train, tiny.job(task, output, tiny.settings(network, **recipe)))


SETTINGS = """
network => {dropout: 0.3} => architecture.dropout is 0.1, not 0.3
network => {output_embedding: 24} => output_embedding is 16, not 24
recipe => {clip: 0.5} => training.clip is 0.1, not 0.5 ... as: initialise
recipe => {maximum_epochs: 2} => epoch 2 ... raise maximum_epochs
new network => {positions: {maximum: 8}} => train.arrow: the source ... 9 token
new network => {vocabulary_selection: {frequent: 1, candidates: 2}} => selection ... candidates
"""


def test_settings_that_do_not_fit_the_start_or_the_data(
    task: Path, start: Path, output: Path
) -> None:
    for part, changes, words in rows(SETTINGS):
        stated = yaml.safe_load(changes)
        recipe = {} if part == "new network" else begun(start, "continue")
        if part == "recipe":
            said = refused(task, output, **recipe | stated)
        else:
            said = refused(task, output, stated, **recipe)
        says(said, words)


MODELS = r"""
{languages: {source: fr, target: en}} => fr to en,
{preparation: none} => prepared by none ... moses_test
{bpe_codes: "w 1\\nw 2\\n"} => 2 BPE merges ... vocabulary_of
{splittable: [w1]} => vocabulary.threshold ... counts
{glossaries: [w1]} => vocabulary.glossaries differ
{truecasers: {en: [A]}} => its truecaser ... differs
{training: {}} => as: initialise
"""


def changed(start: Path, output: Path, **changes: Any) -> Path:
    """Write the model with another description."""
    network, description = load_model(start)
    path = output.with_name("changed.safetensors")
    path.parent.mkdir(exist_ok=True)
    save_model(path, network.state_dict(), description.model_copy(update=changes))
    return path


def test_a_start_of_another_task_or_vocabulary_or_of_other_data(
    task: Path, start: Path, output: Path, tmp_path: Path
) -> None:
    for changes, words in rows(MODELS):
        model = changed(start, output, **yaml.safe_load(changes))
        says(refused(task, output, **begun(model, "continue")), words)
    types = load_model(start)[1].source_types
    model = changed(start, output, source_types=types[::-1])
    said = refused(task, output, **begun(model))
    says(said, f"vocabulary differs: type 1 is '{types[-1]}'", "vocabulary_of")
    other = tiny.prepare_pairs(tmp_path / "other", [["w1"]] * 40, held_out=20)
    said = refused(other, output, **begun(start))
    says(said, "source vocabulary differs", "12 types", "task 1;")
    copy = Path(shutil.copytree(task, tmp_path / "copy"))
    for end in ("arrow", "json"):
        shutil.copy(copy / f"dataset/valid.{end}", copy / f"dataset/train.{end}")
    said = refused(copy, output, **begun(start, "continue"))
    says(said, "data.dataset/train.arrow is")
    says(refused(task, output, **begun(tmp_path / "none")), "none: no such file")
    says(refused(tmp_path, output), "train.json: no such file", "snakemake")


def test_options_and_a_store_that_do_not_fit(
    task: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul, "kernels", lambda: ["blas"])
    job = tiny.job(task, output, candidates=Path(__file__))
    refuses("has no vocabulary_selection", train, job)
    refuses("only blas", train, tiny.job(task, output, products="onednn"))
    job = tiny.job(task, output, states="nosuch://a")
    refuses("states: nosuch://a: cannot be read", train, job)
    monkeypatch.setattr(TokenStore, "__len__", lambda _: 0)
    says(refused(task, output), "train.arrow", "counts.txt")


def test_a_kernel_that_is_not_here(task: Path, output: Path) -> None:
    job = tiny.job(task, output, tiny.settings(maximum_epochs=1))
    train(job)
    (kernels,) = output.parent.glob("state/*/kernels.json")
    kernels.write_text('{"products": "abacus"}')
    says(refusal(train, job), str(kernels), "abacus", "remove")


# ---- the folder of states ----


def test_where_another_training_writes_or_may(
    task: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateFolder(output.with_name("state"), {}).locked():
        says(refused(task, output), "another training is writing here (process ")
        monkeypatch.setattr(fcntl, "flock", without_locks)
        says(refused(task, output), "cannot be locked (No locks available)")


def test_a_full_disk_does_not_hide_how_a_training_ended(tmp_path: Path) -> None:
    def end() -> NoReturn:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        raise UnfinishedError("saved in epoch 3")

    with (
        files_of_at_most(2**40),
        pytest.raises(UnfinishedError, match="saved"),
        StateFolder(tmp_path / "state", {}).locked(),
    ):
        end()


def test_copies_that_cannot_be_written_end_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    states = StateFolder(tmp_path, {}, str(tmp_path / "file"))
    states.write(tmp_path / "last.safetensors", {}, {})
    assert "last.safetensors is not copied" in capsys.readouterr().err


# ---- workers ----


WORKERS = """
{CUDA_VISIBLE_DEVICES: "0,1"} => 1 => 2 => DEVICES=0,1: torch can use no GPU
{RANK: "0", LOCAL_RANK: "0", WORLD_SIZE: "8"} => 1 => 1 => 8 workers: torch can use no GPU
{CUDA_VISIBLE_DEVICES: "0,1", CONVS2S_MEETING: "a:29"} => 2 => 4 => 4 workers ... set gpus to 2
{} => 2 => 1 => 2 nodes ... not a Slurm job ... set nodes to 1
{SLURM_JOB_ID: "1"} => 2 => 1 => 2 nodes ... srun is missing
"""


def test_workers_that_cannot_be_had(
    task: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    for name in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    job = tiny.job(task, output, device="auto")
    for environment, nodes, workers, words in rows(WORKERS):
        with monkeypatch.context() as patch:
            for name, value in yaml.safe_load(environment).items():
                patch.setenv(name, value)
            said = refusal(launch, job, int(nodes), int(workers), ["train", "folder"])
        says(said, words)
