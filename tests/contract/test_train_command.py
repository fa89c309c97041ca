"""``convs2s train`` by hand trains as the workflow does in the same folder."""

import signal
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.training.identity import TrainingJob
from tests.conftest import Terminal
from tests.support.refusals import rows

NEEDED = "--model small --output m.safetensors"
TRAIN = f"train results/demo_en_fr {NEEDED}".split()


@pytest.fixture
def jobs(copy: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrainingJob]:
    """What would be trained, in a folder of its own."""
    found: list[TrainingJob] = []
    monkeypatch.chdir(copy)
    launch = "convs2s.training.launch.launch"
    monkeypatch.setattr(launch, lambda job, *_: found.append(job))
    return found


def test_tables_and_the_name_of_the_folder_reach_the_training(
    copy: Path, run: Terminal, jobs: list[TrainingJob]
) -> None:
    """As tables, any files do that are there."""
    tables = "--dictionary config.yaml --candidates config/costs.yaml"
    truecasers = "--truecasers config/paper.yaml config/claims.yaml"
    run(*f"train . {NEEDED} {tables} {truecasers}".split())
    (job,) = jobs
    assert str(job.dictionary).endswith("config.yaml")
    assert str(job.candidates).endswith("costs.yaml")
    assert [path.name for path in job.truecasers or ()] == ["paper.yaml", "claims.yaml"]
    assert job.label == f"{copy.name}/small/seed1"


# Threads, products, device, minutes between states, events, the time limit and queueing again.
OPTIONS = """
=> 3 blas cpu 15.0 False None False
--threads 2 --products onednn --device auto => 2 onednn auto 15.0 False None False
--checkpoint-minutes 0.5 --tensorboard => 3 blas cpu 0.5 True None False
--time-limit 90 --requeue --workers 0 --cpus 5 => 5 blas cpu 15.0 False 90.0 True
"""


def test_what_no_option_says_is_the_configurations(
    copy: Path, run: Terminal, jobs: list[TrainingJob]
) -> None:
    run(*TRAIN)
    threads = load(copy).model("small").training.threads
    assert (jobs[-1].threads, jobs[-1].device) == (threads, "auto")
    # A time limit is a scheduler's.
    run(*TRAIN, "--time-limit", 90, "--workers", 0, "--cpus", 5)
    assert (jobs[-1].threads, jobs[-1].time_limit) == (5, None)
    run.monkeypatch.setenv("PBS_JOBID", "7.server")
    Path("config.local.yaml").write_text("{cores: 3, products: blas, device: cpu}")
    for options, expected in rows(OPTIONS):
        run(*TRAIN, *options.split())
        one = jobs[-1]
        recipe = f"{one.recipe.checkpoint_minutes} {one.recipe.tensorboard}"
        found = f"{one.threads} {one.products} {one.device} {recipe}"
        assert f"{found} {one.time_limit} {one.requeues}" == expected


def test_a_signal_before_the_first_update_is_reported_once(
    run: Terminal, jobs: list[TrainingJob], capsys: pytest.CaptureFixture[str]
) -> None:
    """By the first worker, also while its modules are imported."""

    def stop(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    run.monkeypatch.setattr("convs2s.config.load.load", stop)
    before = signal.getsignal(signal.SIGTERM)
    for rank, times in (("0", 1), ("1", 0)):
        run.monkeypatch.setenv("RANK", rank)
        with pytest.raises(SystemExit) as ended:
            main(TRAIN)
        assert ended.value.code == 75
        assert signal.getsignal(signal.SIGTERM) == before
        said = capsys.readouterr().err
        assert said.count("convs2s: training is not finished: ") == times
        assert said.count("\n") == times
