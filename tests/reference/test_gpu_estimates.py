"""Hours of a training on GPUs, calculated from peak rates: as worked out elsewhere."""

from dataclasses import replace

import pytest

from convs2s.config.settings import Settings
from convs2s.costs.budget import budgets
from convs2s.costs.roofline import estimate


@pytest.mark.usefixtures("in_folder")
def test_the_papers_english_french_on_gpus_of_today(settings: Settings) -> None:
    (training,) = budgets(settings, ["wmt14_en_fr"], [])[0].trainings
    work = training.work
    known = training.known
    assert work is not None
    assert known is not None
    # FLOP a token, counted elsewhere.
    assert 6 * work.weights == pytest.approx(1.11e9, rel=0.02)
    rates = {}
    for gpu in settings.costs.gpus:
        for stated in ({"precision": "fp32"}, {}, {"compile": False}):
            recipe = work.recipe.model_copy(update=stated)
            found = estimate(replace(work, recipe=recipe), known, gpu, settings.costs)
            if found:
                # In all as many tokens as on the paper's GPU.
                assert found.rate * found.hours == pytest.approx(10.9e6, rel=0.02)
                rates[gpu.name, found.precision, recipe.compile] = found.rate
    assert rates["H100", "tf32", True] == pytest.approx(100_000, rel=0.05)
    assert 165_000 < rates["H100", "bf16", True] < 230_000
    assert rates["H100", "bf16", True] >= rates["H100", "bf16", False]
    assert rates["A100", "tf32", True] > 5 * rates["V100", "fp32", True]
    assert ("V100", "bf16", True) not in rates  # a GPU without bf16

    # The host starts 66 operations a block, 8.1 microseconds each, a third of them if compiled.
    batch = work.recipe.batch.model_copy(update={"micro_batch_tokens": None})
    tiny = replace(work, weights=1, parameters=1, widths=1, types=1)
    for compiled, started in ((False, 28 * 66), (True, 28 * 22)):
        changes = {"batch": batch, "compile": compiled}
        recipe = work.recipe.model_copy(update=changes)
        of_host = replace(tiny, recipe=recipe)
        found = estimate(of_host, known, settings.costs.gpus[0], settings.costs)
        assert found is not None
        assert found.rate == pytest.approx(8 * 32 * 30 / (started * 8.1e-6))
