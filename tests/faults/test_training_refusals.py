"""What a training refuses: models that it cannot start from, data, kernels, folders and workers."""

import fcntl
import random
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from convs2s.config.load import load
from convs2s.data.store import TokenStore
from convs2s.errors import UnfinishedError, UserError
from convs2s.model_file import load_model, save_model
from convs2s.models.kernels import matmul
from convs2s.text.dictionary import read_candidates
from convs2s.training.launch import MEETING, launch
from convs2s.training.run import train
from convs2s.training.state_folder import StateFolder
from tests.support import tiny
from tests.support.limits import files_of_at_most, without_locks
from tests.support.refusals import refusal, says

SELECTION = {"vocabulary_selection": {"frequent": 1, "candidates": 2}}
DIVERGING = {"learning_rate": 1e30, "clip": 1e30, "start": None}


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


@pytest.mark.parametrize(
    ("part", "changes", "words"),
    [
        # The model that a training goes on with is of other settings, or of another task.
        ("architecture", {"dropout": 0.3}, ["architecture.dropout is 0.1, not 0.3"]),
        (
            "architecture",
            {"output_embedding": 24, "positions": {"maximum": 32}},
            ["output_embedding is 16, not 24", "positions.maximum is 16, not 32"],
        ),
        ("recipe", {"clip": 0.5}, ["training.clip is 0.1, not 0.5", "as: initialise"]),
        ("recipe", {"maximum_epochs": 2}, ["epoch 2", "raise maximum_epochs"]),
        ("model", {"languages": {"source": "fr", "target": "en"}}, ["fr to en, "]),
        ("model", {"preparation": "none"}, ["prepared by none", "moses_test"]),
        ("model", {"bpe_codes": "w 1\nw 2\n"}, ["2 BPE merges", "vocabulary_of"]),
        ("model", {"splittable": ["w1"]}, ["vocabulary.threshold", "counts"]),
        ("model", {"glossaries": ["w1"]}, ["vocabulary.glossaries differ"]),
        (
            "model",
            {"splittable": ["w1"], "source_types": [f"v{each}" for each in range(12)]},
            ["source vocabulary differs: type 1 is 'v0'", "vocabulary_of"],
        ),
        ("model", {"truecasers": {"en": ["A"]}}, ["its truecaser", "differs"]),
        ("model", {"training": {}}, ["as: initialise"]),
        # Data and settings.
        (
            "plain",
            {"positions": {"maximum": 8}},
            ["train.arrow: the source", "9 token"],
        ),
        ("plain", SELECTION, ["vocabulary_selection", "candidates"]),
        ("recipe", DIVERGING, ["diverged in epoch 1 at update", "lower the learning"]),
        ("job", {"candidates": Path(__file__)}, ["has no vocabulary_selection"]),
        ("job", {"products": "onednn"}, ["onednn", "only blas", "auto"]),
        ("job", {"states": "nosuch://a"}, ["states: nosuch://a: cannot be read"]),
    ],
)
def test_a_start_or_settings_that_do_not_fit(
    task: Path,
    start: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    changes: dict[str, Any],
    words: list[str],
) -> None:
    monkeypatch.setattr(matmul, "kernels", lambda: ["blas"])
    network, description = load_model(start)
    changed = output.parent / "changed.safetensors"
    changed.parent.mkdir()
    its = changes if part == "model" else {}
    described = description.model_copy(update=its)
    save_model(changed, network.state_dict(), described)
    recipe = begun(changed, "continue") if part in ("architecture", "model") else {}
    if part == "recipe":
        recipe = {**begun(changed, "continue"), **changes}
    architecture = changes if part in ("architecture", "plain") else {}
    settings = tiny.settings(architecture, **recipe)
    one = tiny.job(task, output, settings, **(changes if part == "job" else {}))
    says(refusal(train, one), *words)


def test_a_start_of_another_vocabulary_or_other_data(
    start: Path, output: Path, tmp_path: Path
) -> None:
    def prepared(name: str, sources: list[list[str]]) -> Path:
        return tiny.prepare_pairs(tmp_path / name, sources, held_out=20, mark="x")

    def refused(task: Path, recipe: dict[str, Any]) -> str:
        return refusal(train, tiny.job(task, output, tiny.settings(**recipe)))

    said = refused(prepared("a", [["w1"]] * 40), begun(start))
    says(said, "source vocabulary differs", "12 types", "task 1;", "vocabulary_of")
    others = [[f"w{number % 12}", f"w{number % 7}"] for number in range(200)]
    said = refused(prepared("b", others), begun(start))
    says(said, "source vocabulary differs: type 1 is", "vocabulary_of")
    generator = random.Random(1)  # tiny.prepare's, so that the vocabulary is the same
    sources = [
        generator.choices(tiny.WORDS, k=generator.randint(1, 8)) for _ in range(180)
    ]
    backwards = prepared("c", [*sources[159::-1], *sources[160:]])
    said = refused(backwards, begun(start, "continue"))
    says(said, "data.dataset/train.arrow is")
    says(refused(backwards, begun(tmp_path / "none")), "none: no such file")
    says(refused(tmp_path, {}), "train.json: no such file", "snakemake")


def test_words_cannot_be_selected_where_they_are_split(copy: Path) -> None:
    file = copy / "config/tasks/wmt14_en_de.yaml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("model: wmt14_en_de", "model: ablation"), "utf-8")
    settings = load(copy)
    said = refusal(settings.check_whole, settings.broken)
    says(said, "headline.model", "'ablation' selects its vocabulary")


def test_a_store_without_pairs(
    task: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenStore, "__len__", lambda _: 0)
    says(refusal(train, tiny.job(task, output)), "train.arrow", "counts.txt")


def test_a_kernel_that_is_not_here(task: Path, output: Path) -> None:
    job = tiny.job(task, output, tiny.settings(maximum_epochs=1))
    train(job)
    (kernels,) = output.parent.glob("state/*/kernels.json")
    kernels.write_text('{"products": "abacus"}')
    says(refusal(train, job), str(kernels), "abacus", "remove")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source\ttargets\nthe\tdie der\nhouse\n", "c.tsv:3: expected the columns"),
        ("the\tdie der\n", "c.tsv:1: expected the columns"),
    ],
)
def test_a_table_of_candidates(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.tsv"
    path.write_text(text)
    says(refusal(list, read_candidates(path)), words)


# ---- the folder of states ----


@pytest.mark.parametrize(
    ("flock", "words"),
    [
        (without_locks, "cannot be locked (No locks available)"),
        (fcntl.flock, "another training is writing here (process "),
    ],
)
def test_where_another_training_writes_or_may(
    task: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    flock: Callable[..., None],
    words: str,
) -> None:
    with StateFolder(output.with_name("state"), {}).locked():
        monkeypatch.setattr(fcntl, "flock", flock)
        says(refusal(train, tiny.job(task, output)), words)


def test_a_full_disk_is_said_and_does_not_hide_how_a_training_ended(
    tmp_path: Path,
) -> None:
    folder = StateFolder(tmp_path / "state", {})
    with (
        files_of_at_most(0),
        pytest.raises(UserError, match=f"^{tmp_path}/state: cannot be written: "),
        folder.locked(),
    ):
        pass

    def end() -> NoReturn:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        raise UnfinishedError("saved in epoch 3")

    with (
        files_of_at_most(2**40),
        pytest.raises(UnfinishedError, match="saved"),
        folder.locked(),
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


@pytest.mark.parametrize(
    ("environment", "nodes", "workers", "words"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, 1, 2, ["DEVICES=0,1: torch can use no GPU"]),
        (
            {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"},
            1,
            1,
            ["8 workers: torch can use no GPU"],
        ),
        (
            {"CUDA_VISIBLE_DEVICES": "0,1", MEETING: "first:29"},
            2,
            4,
            ["4 workers", "only 2 GPUs", "DEVICES=0,1", "set gpus to 2"],
        ),
        ({}, 2, 1, ["2 nodes", "not a Slurm job", "set nodes to 1"]),
        ({"SLURM_JOB_ID": "1"}, 2, 1, ["2 nodes", "srun is missing"]),
    ],
)
def test_workers_that_cannot_be_had(
    task: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    nodes: int,
    workers: int,
    words: list[str],
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    for name in ("SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    job = tiny.job(task, output, device="auto")
    says(refusal(launch, job, nodes, workers, ["train", "folder"]), *words)
