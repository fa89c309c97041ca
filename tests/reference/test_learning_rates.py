"""Learning rates of the papers' schedules, and Nesterov's velocity, worked out by hand."""

from typing import Any

import pytest
import torch

from convs2s.training.schedule import Schedule, TrainerState, set_learning_rate
from tests.reference.tables import values
from tests.support import tiny

PLATEAU = {"maximum_epochs": None}

# The second rate is below the least one from the beginning.
PLATEAUS = """
0.25    => null => [3, 4, 3.5, 3.2] => [0.25, 0.025, 0.0025, 0.00025]           => 1 => false
0.25    => null => [5, 6, 3, 2, 1]  => [0.25, 0.025, 0.0025, 0.00025, 0.000025] => 5 => true
0.25    => null => [3, 2, 2]        => [0.25, 0.25, 0.025]                      => 2 => false
0.00005 => null => [5, 4, 3]        => [0.00005, 0.00005, 0.00005]              => 3 => false
0.00005 => null => [5, 4, 4.5]      => [0.00005, 0.00005, 0.000005]             => 2 => true
0.25    => 2    => [3, 2]           => [0.25, 0.25]                             => 2 => true
0.25    => 3    => [3, 2]           => [0.25, 0.25]                             => 2 => false
"""


@pytest.mark.parametrize(
    ("first", "maximum", "losses", "rates", "best", "ends"), values(PLATEAUS)
)
def test_a_plateau_divides_after_each_epoch_from_the_first_that_is_no_better(
    first: float,
    maximum: int | None,
    losses: list[float],
    rates: list[float],
    best: int,
    ends: bool,
) -> None:
    recipe = tiny.settings(maximum_epochs=maximum).training
    schedule = Schedule(first)
    assert schedule.best_epoch == 0
    seen = []
    for epoch, loss in enumerate(losses, start=1):
        assert schedule.stop_reason is None
        schedule = schedule.after_epoch(epoch, loss, recipe)
        seen.append(schedule.learning_rate)
    assert seen == pytest.approx(rates)
    assert schedule.best_epoch == best
    assert (schedule.stop_reason is not None) == ends


# A higher BLEU is better whatever the loss, and one bad epoch divides nothing. Three in a row
# without progress do; after that, each epoch divides. While the loss falls, the model learns. Near
# zero, and of equal BLEU, the loss decides.
BY_BLEU = """
[3.0, 3.5, 4.0]           => [10, 9, 11]           => 3 => 0
[3.0, 3.1, 3.2, 3.0]      => [10, 9, 9.5, 9.9]     => 1 => 1
[3.0, 3.1, 3.2, 3.0, 3.0] => [10, 9, 9.5, 9.9, 11] => 5 => 2
[3.0, 2.9, 2.8, 2.7, 2.6] => [9, 8, 8.5, 7, 8.9]   => 1 => 0
[3.0, 2.9, 3.1, 2.9, 2.8] => [9, 8, 8.5, 7, 8.9]   => 1 => 0
[3.0, 2.5, 2.0, 1.9, 1.8] => [0.2, 0, 0.1, 2.5, 0] => 5 => 0
[3.0, 3.5, 3.1, 3.2]      => [0.2, 0, 0.1, 4.9]    => 1 => 1
[3.0, 3.5, 3.2]           => [4.9, 5.0, 4.9]       => 2 => 0
[3.0, 2.0, 2.5, 1.0]      => [100, 100, 100, 100]  => 4 => 0
"""


@pytest.mark.parametrize(("losses", "bleu", "best", "divisions"), values(BY_BLEU))
def test_by_bleu_an_epoch_needs_a_higher_score_or_else_a_lower_loss(
    losses: list[float], bleu: list[float], best: int, divisions: int
) -> None:
    recipe = tiny.settings(best_by="bleu", **PLATEAU).training
    state = TrainerState(Schedule(0.25), 0.25, 1)
    for loss, score in zip(losses, bleu, strict=True):
        state.tokens = 1
        state.finish_epoch(loss, None, recipe, score)
    assert state.schedule.best_epoch == best
    assert state.schedule.best_loss == losses[best - 1]
    assert state.schedule.learning_rate == pytest.approx(0.25 / 10**divisions)
    # A curve marks the same epoch.
    assert min(state.history, key=lambda row: row.criterion).epoch == best


# Steps as of Sutskever et al. (2014): halved every half epoch after the fifth. In the second row,
# (5.3 - 5) / 0.1 is less than 3.
WITHIN = """
{kind: step, hold: 5, every: 0.5, divide_by: 2} => 7.5 => [0, 4.99, 5.01]    => [1, 1, 0.5]
{kind: step, hold: 5, every: 0.5, divide_by: 2} => 7.5 => [5.49, 5.51, 7.49] => [0.5, 0.25, 0.03125]
{kind: step, hold: 5, every: 0.1, divide_by: 2} => 9   => [5.3]              => [0.0625]
{kind: cosine, warmup: 1.0}                     => 5   => [0.5, 1, 2]        => [0.5, 1, 0.8535534]
{kind: cosine, warmup: 1.0}                     => 5   => [3, 5]             => [0.5, 0]
{kind: cosine, warmup: 0}                       => 5   => [0]                => [1]
"""


@pytest.mark.parametrize(("schedule", "maximum", "moments", "rates"), values(WITHIN))
def test_rates_within_a_training(
    schedule: dict[str, Any], maximum: float, moments: list[float], rates: list[float]
) -> None:
    recipe = tiny.settings(
        learning_rate=1.0, schedule=schedule, maximum_epochs=maximum
    ).training
    seen = [Schedule(1.0).learning_rate_at(moment, recipe) for moment in moments]
    assert seen == pytest.approx(rates)


def test_steps_end_at_their_minimum() -> None:
    # The PyTorch successor's recipe: 0.5, from epoch 50 on divided after each epoch.
    steps = {"kind": "step", "hold": 49, "every": 1, "divide_by": 10, "minimum": 1e-4}
    recipe = tiny.settings(learning_rate=0.5, schedule=steps, **PLATEAU).training
    ends = [Schedule(0.5).after_epoch(epoch, 1.0, recipe) for epoch in (50, 51, 52)]
    assert [end.stop_reason is None for end in ends] == [True, True, False]


# 0.25, divided by 10 after each epoch, is below 0.0001 after four.
LAST = """
{schedule: {kind: cosine}, maximum_epochs: 5} => false => 1 => 5
{maximum_epochs: null}                        => false => 1 => null
{maximum_epochs: 2.5}                         => false => 1 => 2.5
{maximum_epochs: null}                        => true  => 3 => 6
{maximum_epochs: 2.5}                         => true  => 2 => 2.5
"""


@pytest.mark.parametrize(("changes", "annealing", "epoch", "last"), values(LAST))
def test_the_last_epoch_is_known_where_validation_does_not_decide_it(
    changes: dict[str, Any], annealing: bool, epoch: int, last: float | None
) -> None:
    recipe = tiny.settings(**changes).training
    assert Schedule(0.25, annealing).last_epoch(epoch, recipe) == last


@pytest.mark.parametrize(("rate", "factor"), [(0.125, 2.0), (0.5, 0.5), (0.0, 1.0)])
def test_velocity_is_kept_whichever_way_the_rate_goes(
    rate: float, factor: float
) -> None:
    """The end of a cosine, where the rate is 0, leaves it as it is."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], 0.25, 0.9, nesterov=True)
    weight.sum().backward()
    optimizer.step()
    set_learning_rate(optimizer, rate, "keep")
    after = optimizer.state[weight]["momentum_buffer"]
    torch.testing.assert_close(after, torch.full((3,), factor))
