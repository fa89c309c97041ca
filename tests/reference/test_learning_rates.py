"""Learning rates of the papers' schedules, and Nesterov's velocity, worked out by hand."""

from typing import Any

import pytest
import torch
import yaml

from convs2s.training.schedule import Schedule, TrainerState, set_learning_rate
from tests.support import tiny

RATES = yaml.safe_load("""
# Sutskever et al. 2014: halved every half epoch after the fifth.
- [{schedule: {kind: step, hold: 5, every: 0.5, divide_by: 2}, maximum_epochs: 7.5},
    [0.0, 4.99, 5.01, 5.49, 5.51, 6.01, 7.49], [1, 1, 0.5, 0.5, 0.25, 0.125, 0.03125]]
# (5.3 - 5) / 0.1 is less than 3.
- [{schedule: {kind: step, hold: 5, every: 0.1, divide_by: 2}, maximum_epochs: 9}, [5.3], [0.0625]]
- [{schedule: {kind: cosine, warmup: 1.0}, maximum_epochs: 5},
    [0.5, 1, 2, 3, 5], [0.5, 1, 0.853553391, 0.5, 0]]
- [{schedule: {kind: cosine, warmup: 0}, maximum_epochs: 5}, [0], [1]]
""")
"""Recipes with a rate of 1, moments of their trainings, and the rates then."""

PLATEAUS = yaml.safe_load("""
- [&plateau {maximum_epochs: null}, [5, 4, 4.1, 3, 2, 1],
    [0.25, 0.25, 25.0e-3, 25.0e-4, 25.0e-5, 25.0e-6], 6, true]
- [*plateau, [3, 4, 3.5, 3.2], [0.25, 0.025, 0.0025, 0.00025], 1, false]
- [*plateau, [3, 2, 2], [0.25, 0.25, 0.025], 2, false]
- [&low {maximum_epochs: null, optimizer: adam, learning_rate: 0.00005}, [5, 4, 3],
    [5.0e-5, 5.0e-5, 5.0e-5], 3, false]
- [*low, [5, 4, 4.5], [5.0e-5, 5.0e-5, 5.0e-6], 2, true]
- [{maximum_epochs: 2}, [3, 2], [0.25, 0.25], 2, true]
- [{maximum_epochs: 3}, [3, 2], [0.25, 0.25], 2, false]
""")
"""Recipes, losses of epochs and the rates after them, the best epoch, and whether it is the end."""

BY_BLEU = yaml.safe_load("""
# A higher BLEU is better whatever the loss, and one bad epoch divides nothing.
- [[[3.0, 10.0], [3.5, 9.0], [4.0, 11.0]], 3, 0]
# Three in a row without progress do; after that, each epoch divides.
- [[[3.0, 10.0], [3.1, 9.0], [3.2, 9.5], [3.0, 9.9]], 1, 1]
- [[[3.0, 10.0], [3.1, 9.0], [3.2, 9.5], [3.0, 9.9], [3.0, 11.0]], 5, 2]
# While the loss falls, the model learns.
- [[[3.0, 9.0], [2.9, 8.0], [2.8, 8.5], [2.7, 7.0], [2.6, 8.9]], 1, 0]
- [[[3.0, 9.0], [2.9, 8.0], [3.1, 8.5], [2.9, 7.0], [2.8, 8.9]], 1, 0]
# Near zero, and of equal BLEU, the loss decides.
- [[[3.0, 0.2], [2.5, 0.0], [2.0, 0.1], [1.9, 2.5], [1.8, 0.0]], 5, 0]
- [[[3.0, 0.2], [3.5, 0.0], [3.1, 0.1], [3.2, 4.9]], 1, 1]
- [[[3.0, 4.9], [3.5, 5.0], [3.2, 4.9]], 2, 0]
- [[[3.0, 100.0], [2.0, 100.0], [2.5, 100.0], [1.0, 100.0]], 4, 0]
""")
"""Losses and BLEU of epochs, the best epoch, and how often the rate is divided."""

PLATEAU: dict[str, Any] = {"maximum_epochs": None}


def test_a_plateau_divides_after_each_epoch_from_the_first_that_is_no_better() -> None:
    for changes, losses, rates, best, end in PLATEAUS:
        recipe = tiny.settings(**changes).training
        schedule = Schedule(recipe.learning_rate)
        assert schedule.best_epoch == 0
        seen = []
        for epoch, loss in enumerate(losses, start=1):
            assert schedule.stop_reason is None
            schedule = schedule.after_epoch(epoch, loss, recipe)
            seen.append(schedule.learning_rate)
        assert seen == pytest.approx(rates)
        assert schedule.best_epoch == best
        assert (schedule.stop_reason is not None) == end


def test_by_bleu_an_epoch_needs_a_higher_score_or_else_a_lower_loss() -> None:
    recipe = tiny.settings(best_by="bleu", maximum_epochs=None).training
    for epochs, best, divisions in BY_BLEU:
        state = TrainerState(Schedule(0.25), 0.25, 1)
        for loss, bleu in epochs:
            state.tokens = 1
            state.finish_epoch(loss, None, recipe, bleu)
        assert state.schedule.best_epoch == best
        assert state.schedule.best_loss == epochs[best - 1][0]
        assert state.schedule.learning_rate == pytest.approx(0.25 / 10**divisions)
        # A curve marks the same epoch.
        assert min(state.history, key=lambda row: row.criterion).epoch == best


def test_rates_within_a_training() -> None:
    for changes, moments, rates in RATES:
        recipe = tiny.settings(learning_rate=1.0, **changes).training
        seen = [Schedule(1.0).learning_rate_at(moment, recipe) for moment in moments]
        assert seen == pytest.approx(rates)


def test_steps_end_at_their_minimum() -> None:
    # The PyTorch successor's recipe: 0.5, from epoch 50 on divided after each epoch.
    steps = {"kind": "step", "hold": 49, "every": 1, "divide_by": 10, "minimum": 1e-4}
    recipe = tiny.settings(learning_rate=0.5, schedule=steps, **PLATEAU).training
    ends = [Schedule(0.5).after_epoch(epoch, 1.0, recipe) for epoch in (50, 51, 52)]
    assert [end.stop_reason is None for end in ends] == [True, True, False]


def test_the_last_epoch_is_known_where_validation_does_not_decide_it() -> None:
    cosine = {"schedule": {"kind": "cosine"}, "maximum_epochs": 5}
    part = {"maximum_epochs": 2.5}
    for changes, annealing, epoch, last in (
        (cosine, False, 1, 5),
        (PLATEAU, False, 1, None),
        (part, False, 1, 2.5),
        # 0.25, divided by 10 after each epoch, is below 0.0001 after four.
        (PLATEAU, True, 3, 6),
        (part, True, 2, 2.5),
    ):
        recipe = tiny.settings(**changes).training
        assert Schedule(0.25, annealing).last_epoch(epoch, recipe) == last


def test_velocity_is_kept_whichever_way_the_rate_goes() -> None:
    """The end of a cosine, where the rate is 0, leaves it as it is."""
    for rate, factor in {0.125: 2.0, 0.5: 0.5, 0.25: 1.0, 0.0: 1.0}.items():
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], 0.25, 0.9, nesterov=True)
        weight.sum().backward()
        optimizer.step()
        set_learning_rate(optimizer, rate, "keep")
        after = optimizer.state[weight]["momentum_buffer"]
        torch.testing.assert_close(after, torch.full((3,), factor))
