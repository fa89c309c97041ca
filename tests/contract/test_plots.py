"""The plots of a training and of attention: they draw what they are given, alike at each run."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from convs2s.paper.attention_maps import plot_attention_maps
from convs2s.paper.curves import learning_curves, plot_learning_curve
from convs2s.training.history import EpochRecord
from convs2s.training.progress import write_history
from tests.contract.documents import svg_texts
from tests.support.refusals import refuses

pytestmark = pytest.mark.usefixtures("in_folder")


def epochs(*rates: float) -> list[EpochRecord]:
    """Epochs with such learning rates."""
    return [
        EpochRecord(
            epoch,
            updates=10,
            learning_rate=rate,
            train_loss=3 / epoch,
            valid_loss=3.5 / epoch,
            valid_perplexity=math.exp(3.5 / epoch),
            tokens=1000,
            tokens_per_second=100,
        )
        for epoch, rate in enumerate(rates, start=1)
    ]


def plot(rates: Sequence[float], *outputs: Path) -> None:
    """Plot the history of epochs with such learning rates."""
    path = Path("history.jsonl")
    write_history(path, epochs(*rates), {"stop": "the rate fell"})
    plot_learning_curve(history=path, heading="tiny", outputs=outputs)


def test_a_learning_curve_says_what_happened() -> None:
    output = Path("plots/curve.svg")
    for rates, texts in (
        ((0.25, 0.25, 0.025), {"best: 3.211 in epoch 3", "0.25", "0.025"}),
        # A single epoch is read off its points.
        ((0.025,), {"1", "33.12", "20.09", "0.025", "validation", "e^(training loss)"}),
    ):
        plot(rates, output)
        assert texts | {"tiny", "stopped: the rate fell"} <= svg_texts(output)
    refuses("history.jsonl: no epoch", plot, (), output)


def test_a_rule_stands_where_the_rate_is_halved_and_the_axis_has_room() -> None:
    """The last rate of a cosine, next to nothing, stands at the foot of the axis."""
    rates = (0.4, 0.4, 0.3, 0.15, 1e-11)
    points = learning_curves({"seed1": epochs(*rates)})["learning rate"]["data"][
        "values"
    ]
    assert [one["epoch"] for one in points if one["falls"]] == [4, 5]
    assert [one["epoch"] for one in points if one["is_best"]] == [5]
    drawn = [one["drawn rate"] for one in points]
    assert drawn == pytest.approx([*rates[:-1], 0.4 / 1e4])


def test_a_map_says_how_far_its_weights_spread() -> None:
    source = ["The", "man", "pays", "$", "3", "or", "$", "4", "w" * 60, "</s>"]
    target = ["l'", "homme", "paie", "3", "$", "</s>"]
    output = Path("attention.svg")
    even = np.full((6, 10), 1 / 10)
    narrow = np.eye(6, 10)
    mixed = np.where(np.arange(6)[:, None] % 2, even, narrow)
    plot_attention_maps([even, narrow, mixed], source, target, "tiny", [output])
    spreads = ["0.10, entropy 2.30", "1.00, entropy 0.00", "0.55, entropy 1.15"]
    texts = svg_texts(output)
    assert {f"largest {spread}" for spread in spreads} <= texts
    assert {"tiny", "layer 1", "layer 3", "paie", "pays", "w" * 23 + "…"} <= texts
    drawn = output.read_text("utf-8")
    assert drawn.count(">$<") == 3 * (2 + 1)  # repeated words stay two


def test_equal_numbers_give_equal_bytes() -> None:
    drawn = []
    for name in ("first", "second"):
        outputs = [Path(name, f"curve.{end}") for end in ("svg", "png", "pdf")]
        plot((0.25, 0.1), *outputs)
        drawn.append([output.read_bytes() for output in outputs])
    assert drawn[0] == drawn[1]
    pdf = drawn[0][2]
    # Every byte of a page is where its table of contents says.
    table = re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", pdf)
    assert table is not None
    assert re.match(rb"xref|\d+ 0 obj", pdf[int(table[1]) :])
