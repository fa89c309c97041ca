"""``convs2s train`` by hand trains as the workflow does in the same folder."""

from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.training.identity import TrainingJob
from tests.unit.conftest import Terminal


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[TrainingJob]:
    """What would be trained."""
    found: list[TrainingJob] = []
    monkeypatch.setattr(
        "convs2s.training.launch.launch", lambda job, *_: found.append(job)
    )
    return found


def test_files_that_are_not_there_or_not_asked_for_are_refused_before_a_training(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch, jobs: list[TrainingJob]
) -> None:
    monkeypatch.chdir(copy)
    words = (
        "train",
        "results/demo_en_fr",
        "--model",
        "small",
        "--output",
        "model.safetensors",
    )
    with pytest.raises(
        SystemExit, match=r"--start a: .*'small' has no training\.start"
    ):
        run(*words, "--start", "a")
    with pytest.raises(SystemExit, match=r"none\.tsv: no such file"):
        run(*words, "--dictionary", "none.tsv")
    assert not jobs


def test_the_current_folder_has_a_name(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch, jobs: list[TrainingJob]
) -> None:
    monkeypatch.chdir(copy)
    run("train", ".", "--model", "small", "--output", "model.safetensors")
    assert jobs[0].label == f"{copy.name}/small/seed1"


def test_tables_reach_the_training(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch, jobs: list[TrainingJob]
) -> None:
    monkeypatch.chdir(copy)
    words = (
        "train",
        "results/demo_en_fr",
        "--model",
        "small",
        "--output",
        "model.safetensors",
    )
    names = ("dictionary.tsv", "candidates.tsv", "en.tsv", "fr.tsv")
    dictionary, candidates, *truecasers = (copy / name for name in names)
    for path in (dictionary, candidates, *truecasers):
        path.touch()
    tables = (
        "--dictionary",
        dictionary,
        "--candidates",
        candidates,
        "--truecasers",
        *truecasers,
    )
    run(*words, *tables)
    (job,) = jobs
    assert (job.dictionary, job.candidates) == (dictionary, candidates)
    assert list(job.truecasers or ()) == truecasers


def test_what_no_option_says_is_the_configurations(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch, jobs: list[TrainingJob]
) -> None:
    monkeypatch.chdir(copy)
    words = (
        "train",
        "results/demo_en_fr",
        "--model",
        "small",
        "--output",
        "model.safetensors",
    )
    run(*words)
    (copy / "config.local.yaml").write_text("{cores: 3, products: blas, device: cpu}")
    run(*words)
    run(*words, "--threads", 2, "--products", "onednn", "--device", "auto")
    run(*words, "--checkpoint-minutes", 0.5, "--tensorboard")
    threads = load(copy).model("small").training.threads
    assert [(job.threads, job.products, job.device) for job in jobs[:3]] == [
        (threads, "auto", "auto"),
        (3, "blas", "cpu"),
        (2, "onednn", "auto"),
    ]
    recipes = [job.recipe for job in jobs[-2:]]
    assert [(recipe.checkpoint_minutes, recipe.tensorboard) for recipe in recipes] == [
        (15.0, False),
        (0.5, True),
    ]


def test_a_time_limit_is_a_schedulers(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch, jobs: list[TrainingJob]
) -> None:
    monkeypatch.chdir(copy)
    words = (
        "train",
        "results/demo_en_fr",
        "--model",
        "small",
        "--output",
        "model.safetensors",
    )
    run(*words, "--time-limit", 90)
    monkeypatch.setenv("PBS_JOBID", "7.server")
    run(*words, "--time-limit", 90, "--requeue")
    run(*words)
    assert [job.time_limit for job in jobs] == [None, 90.0, None]
    assert [job.requeues for job in jobs] == [False, True, False]


def test_a_network_of_other_layers_has_no_products_to_measure(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    monkeypatch.setattr("convs2s.models.kernels.choice.products_of", lambda network: [])
    with pytest.raises(
        SystemExit, match="--model demo: has no layers of this package whose"
    ):
        run("kernels", "--model", "demo")
