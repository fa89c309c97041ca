"""``convs2s train`` by hand trains as the workflow does in the same folder."""

import signal
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.training.identity import TrainingJob
from tests.conftest import Terminal

OPTIONS = "--model small --output m.safetensors"
TRAIN = f"train results/demo_en_fr {OPTIONS}".split()


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
    for name in ("dictionary.tsv", "candidates.tsv", "en.tsv", "fr.tsv"):
        Path(name).touch()
    tables = "--dictionary dictionary.tsv --candidates candidates.tsv"
    command = f"train . {OPTIONS} {tables} --truecasers en.tsv fr.tsv"
    run(*command.split())
    (job,) = jobs
    assert str(job.dictionary).endswith("dictionary.tsv")
    assert str(job.candidates).endswith("candidates.tsv")
    assert [path.name for path in job.truecasers or ()] == ["en.tsv", "fr.tsv"]
    assert job.label == f"{copy.name}/small/seed1"


def test_what_no_option_says_is_the_configurations(
    copy: Path, run: Terminal, jobs: list[TrainingJob]
) -> None:
    run(*TRAIN)
    Path("config.local.yaml").write_text("{cores: 3, products: blas, device: cpu}")
    run(*TRAIN)
    run(*TRAIN, "--threads", 2, "--products", "onednn", "--device", "auto")
    run(*TRAIN, "--checkpoint-minutes", 0.5, "--tensorboard")
    threads = load(copy).model("small").training.threads
    assert [(job.threads, job.products, job.device) for job in jobs] == [
        (threads, "auto", "auto"),
        (3, "blas", "cpu"),
        (2, "onednn", "auto"),
        (3, "blas", "cpu"),
    ]
    before, after = (job.recipe for job in jobs[-2:])
    assert (before.checkpoint_minutes, before.tensorboard) == (15.0, False)
    assert (after.checkpoint_minutes, after.tensorboard) == (0.5, True)


@pytest.mark.parametrize(("rank", "times"), [("0", 1), ("1", 0)])
def test_a_signal_before_the_first_update_is_reported_once(
    run: Terminal,
    jobs: list[TrainingJob],
    capsys: pytest.CaptureFixture[str],
    rank: str,
    times: int,
) -> None:
    """By the first worker, also while its modules are imported."""

    def stop(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    run.monkeypatch.setattr("convs2s.config.load.load", stop)
    run.monkeypatch.setenv("RANK", rank)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        main(TRAIN)
    said = capsys.readouterr().err
    assert ended.value.code == 75
    assert signal.getsignal(signal.SIGTERM) == before
    assert said.count("convs2s: training is not finished: ") == times
    assert said.count("\n") == times


def test_a_time_limit_is_a_schedulers(run: Terminal, jobs: list[TrainingJob]) -> None:
    run(*TRAIN, "--time-limit", 90)
    run.monkeypatch.setenv("PBS_JOBID", "7.server")
    run(*TRAIN, "--time-limit", 90, "--requeue")
    run(*TRAIN)
    assert [job.time_limit for job in jobs] == [None, 90.0, None]
    assert [job.requeues for job in jobs] == [False, True, False]
