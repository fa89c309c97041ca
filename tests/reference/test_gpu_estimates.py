"""The speed of a training on GPUs, calculated from peak rates: as worked out elsewhere."""

from dataclasses import replace

import pytest

from convs2s.config.architecture import VocabularySelection
from convs2s.config.settings import Settings
from convs2s.costs.budget import TrainingCost, budgets
from convs2s.costs.roofline import CalculatedSpeed, estimates

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture
def training(settings: Settings) -> TrainingCost:
    return budgets(settings, ["wmt14_en_fr"], [])[0].trainings[0]


def test_the_papers_english_french_on_gpus_of_today(
    settings: Settings, training: TrainingCost
) -> None:
    work = training.work
    # FLOP a token, counted elsewhere.
    assert 6 * work.weights == pytest.approx(1.11e9, rel=0.02)
    rates = {}
    for gpu in settings.costs.gpus:
        for stated in ({"precision": "fp32"}, {}, {"compile": False}):
            recipe = work.recipe.model_copy(update=stated)
            changed = replace(work, recipe=recipe)
            found = next(estimates(CalculatedSpeed(gpu, settings.costs), changed), None)
            if found:
                rates[gpu.name, found.update.precision, recipe.compile] = found.rate
    # In all as many tokens as on the paper's GPU.
    assert training.epochs is not None
    assert training.epoch_tokens is not None
    tokens = training.epochs * training.epoch_tokens
    assert tokens == pytest.approx(10.9e6 * 3600, rel=0.02)
    assert rates["H100", "tf32", True] == pytest.approx(100_000, rel=0.05)
    assert 165_000 < rates["H100", "bf16", True] < 230_000
    assert rates["H100", "bf16", True] >= rates["H100", "bf16", False]
    assert rates["A100", "tf32", True] > 5 * rates["V100", "fp32", True]
    assert ("V100", "bf16", True) not in rates  # a GPU without bf16


def test_the_host_starts_operations_and_gpus_sum_their_gradients(
    settings: Settings, training: TrainingCost
) -> None:
    gpu = settings.costs.gpus[0]
    endless = gpu.model_copy(update={"bf16": 1e9, "bandwidth": 1e9})
    gradients = 4 * training.work.parameters
    for compiled, of_blocks in ((False, 28 * 61), (True, 28 * 61 / 3)):
        launches = 50 + 0.03 * of_blocks  # the others are replayed
        recipe = training.work.recipe.model_copy(update={"compile": compiled})
        work = replace(training.work, recipe=recipe)
        found = list(estimates(CalculatedSpeed(endless, settings.costs), work))
        assert [one.place for one in found] == ["1 H100", "8 H100", "2 x 8 H100"]
        assert {one.update.launches for one in found} == {round(launches)}
        # Of NVLink, and of the slower of it and the network.
        sums = 0, 2 * 7 / 8 * gradients / 450e9, 2 * 15 / 16 * gradients / 400e9
        for one, summing in zip(found, sums, strict=True):
            seconds = launches * 22.7e-6 + summing
            assert one.rate == pytest.approx(256 * 30 / seconds, rel=1e-3)
    # Without a replay: as many tokens at a time as fit into its memory, as stated, or all.
    selection = VocabularySelection(frequent=9, candidates=9)
    changes = {"vocabulary_selection": selection}
    architecture = training.work.architecture.model_copy(update=changes)
    for stated, times in ((4000, 4), (8000, 16), (None, 1)):
        batch = recipe.batch.model_copy(update={"micro_batch_tokens": stated})
        recipe = recipe.model_copy(update={"batch": batch, "compile": False})
        work = replace(training.work, recipe=recipe, architecture=architecture)
        update = CalculatedSpeed(endless, settings.costs).update(work, 128_000)
        assert update is not None
        assert update.launches == times * 28 * 61
