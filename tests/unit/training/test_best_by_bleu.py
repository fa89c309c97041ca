"""The best epoch, and the end, by BLEU of validation pairs."""

from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from convs2s.config.model import Recipe
from convs2s.files.checksums import sha256
from convs2s.model_file import describe_model
from convs2s.paper.curves import plot_learning_curve
from convs2s.scoring.bleu import bleu_of_statistics, statistics_of
from convs2s.training.history import read_history
from convs2s.training.run import train
from convs2s.training.schedule import Schedule, TrainerState
from tests.support import tiny
from tests.support.interrupted import train_until

HYPOTHESES = ["a b c d e", "a x", "b"]
REFERENCES = ["a b c d f", "a b", "c"]
BY_BLEU = tiny.settings(best_by="bleu")


def test_the_score_is_sacrebleus() -> None:
    expected = (
        BLEU(tokenize="none", force=True).corpus_score(HYPOTHESES, [REFERENCES]).score
    )
    assert bleu_of_statistics(statistics_of(HYPOTHESES, REFERENCES)) == pytest.approx(
        expected
    )
    assert bleu_of_statistics(statistics_of(["a x y z"], ["a b c d"])) > 0  # smoothed


def test_a_higher_bleu_is_better_whatever_the_loss() -> None:
    recipe = Recipe(best_by="bleu")
    state = TrainerState(Schedule(recipe.learning_rate), recipe.learning_rate, 1)
    for loss, bleu in ((3.0, 10.0), (2.0, 9.0), (4.0, 11.0)):
        state.tokens = 1
        state.finish_epoch(loss, None, recipe, bleu)
    assert state.schedule.best_epoch == 3
    assert state.schedule.annealing  # since the second
    assert "BLEU 11.00  " in state.history[-1].line(None)


@pytest.fixture(scope="module")
def trained(task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bleu")
    train(tiny.job(task, folder / "model.safetensors", given=BY_BLEU))
    return folder


def test_the_history_has_the_bleu_of_greedy_translations(trained: Path) -> None:
    epochs = read_history(trained / "history.jsonl").epochs
    scores = [row.valid_bleu for row in epochs]
    assert all(score is not None for score in scores)
    best = scores.index(max(score for score in scores if score is not None)) + 1
    described = describe_model(trained / "model.safetensors").training
    assert described["best_epoch"] == best
    assert described["validation_perplexity"] == pytest.approx(
        epochs[best - 1].valid_perplexity
    )


def test_a_killed_training_ends_with_the_same_bytes(
    trained: Path, task: Path, tmp_path: Path
) -> None:
    job = tiny.job(task, tmp_path / "model.safetensors", given=BY_BLEU)
    train_until(job, epoch=1)
    train(job)
    assert sha256(job.output) == sha256(trained / "model.safetensors")


def test_the_curve_shows_it(trained: Path, tmp_path: Path) -> None:
    figure = tmp_path / "curve.svg"
    history = trained / "history.jsonl"
    plot_learning_curve(history=history, heading="tiny", outputs=[figure])
    assert ", BLEU " in figure.read_text("utf-8")
