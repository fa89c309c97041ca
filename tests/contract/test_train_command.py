"""``convs2s train`` by hand trains as the workflow does in the same folder."""

import signal
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.training.identity import TrainingJob
from tests.conftest import Terminal
from tests.support.refusals import rows

TRAIN = ["train", "--model=small", "--output=m.safetensors", "results/demo_en_fr"]


@pytest.fixture
def jobs(copy: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrainingJob]:
    """What would be trained, in a folder of its own."""
    found: list[TrainingJob] = []
    monkeypatch.chdir(copy)
    launch = "convs2s.training.launch.launch"
    monkeypatch.setattr(launch, lambda job, *_: found.append(job))
    return found


# Threads, products, device, minutes between states, events, the time limit and queueing again.
OPTIONS = """
=> 3 blas cpu 15.0 False None False
--threads 2 --products onednn --device auto => 2 onednn auto 15.0 False None False
--checkpoint-minutes 0.5 --tensorboard => 3 blas cpu 0.5 True None False
--time-limit 90 --requeue --workers 0 --cpus 5 => 5 blas cpu 15.0 False 90.0 True
"""


# As tables, any files do that are there.
TABLES = """
--dictionary config.yaml --candidates config/costs.yaml
--truecasers config/paper.yaml config/claims.yaml
"""


def test_options_reach_the_training_and_what_none_says_is_the_configurations(
    copy: Path, run: Terminal, jobs: list[TrainingJob]
) -> None:
    run(*TRAIN[:-1], ".", *TABLES.split())
    assert jobs[-1].label == f"{copy.name}/small/seed1"
    assert str(jobs[-1].dictionary).endswith("config.yaml")
    assert str(jobs[-1].candidates).endswith("costs.yaml")
    names = [path.name for path in jobs[-1].truecasers or ()]
    assert names == ["paper.yaml", "claims.yaml"]
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
