"""The plots: they draw what they are given, alike at each run, and refuse what is no history."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.paper.attention_maps import plot_attention_maps
from convs2s.paper.charts import Panel, Point, padded
from convs2s.paper.curves import learning_curves, plot_learning_curve
from convs2s.training.history import EpochRecord, read_history, without_absent
from tests.support.documents import svg_texts

SOURCE = ["The", "man", "pays", "$", "3", "or", "$", "4", ".", "</s>"]
TARGET = ["l'", "homme", "paie", "3", "$", "</s>"]


def history(folder: Path, *, epochs: int = 4, stop: str | None = None) -> Path:
    """Write a history in which the learning rate drops before the last epoch."""
    records = [
        EpochRecord(
            epoch=epoch,
            updates=10 * epoch,
            learning_rate=0.25 if epoch < epochs else 0.025,
            train_loss=3 / epoch,
            valid_loss=3.5 / epoch,
            valid_perplexity=math.exp(3.5 / epoch),
            tokens=1000,
            tokens_per_second=100,
        )
        for epoch in range(1, epochs + 1)
    ]
    rows = [*map(without_absent, records), *([{"stop": stop}] if stop else [])]
    path = folder / "history.jsonl"
    write_lines(path, (json.dumps(row) for row in rows))
    return path


def attention(layers: int, targets: int, sources: int) -> NDArray[np.float32]:
    weights = np.random.default_rng(1).random(
        (layers, targets, sources), dtype=np.float32
    )
    weights /= weights.sum(axis=2, keepdims=True)
    return weights


def test_learning_curve_says_what_happened(tmp_path: Path) -> None:
    outputs = [tmp_path / "plots" / "curve.svg", tmp_path / "plots" / "curve.png"]
    stopped = history(tmp_path, stop="the learning rate fell below 0.0001")
    plot_learning_curve(
        history=stopped, heading="tiny · small · seed1", outputs=outputs
    )
    drawn = outputs[0].read_text("utf-8")
    assert f"best: {math.exp(3.5 / 4):.4g} in epoch 4" in drawn
    assert "stopped: the learning rate fell below 0.0001" in drawn
    assert ">tiny · small · seed1<" in drawn
    assert ">0.25<" in drawn
    assert ">0.025<" in drawn
    assert outputs[1].read_bytes().startswith(b"\x89PNG")


def test_a_single_epoch_is_read_off_its_points(tmp_path: Path) -> None:
    output = tmp_path / "curve.svg"
    plot_learning_curve(
        history=history(tmp_path, epochs=1), heading="tiny", outputs=[output]
    )
    texts = svg_texts(output)
    # The epoch; validation and training perplexity; the rate; what each shape stands for.
    assert {"1", "33.12", "20.09", "0.025", "validation", "e^(training loss)"} <= texts
    panels = learning_curves({"seed1": read_history(tmp_path / "history.jsonl").epochs})
    lines = panels["perplexity"]["layer"][1]["layer"]
    shapes = [layer["encoding"]["shape"]["scale"] for layer in lines[1:]]
    assert [(scale["domain"], scale["range"][:2]) for scale in shapes] == [
        (["validation", "e^(training loss)"], ["circle", "square"])
    ]


def points_of(panel: Panel) -> list[Point]:
    """What a panel is drawn from."""
    points: list[Point] = panel["data"]["values"]
    return points


def test_a_rule_stands_between_the_epochs_whose_rates_differ(tmp_path: Path) -> None:
    panels = learning_curves({"seed1": read_history(history(tmp_path)).epochs})
    assert [
        one["epoch"] for one in points_of(panels["perplexity"]) if one["falls"]
    ] == [4]


def test_a_cosine_has_no_rules_and_leaves_room_for_its_rates(tmp_path: Path) -> None:
    """Its last rate, next to nothing, stands at the foot of the axis."""
    epochs = read_history(history(tmp_path, epochs=15)).epochs
    rates = [0.5e-3 * (1 + math.cos(math.pi * place / 15)) for place in range(1, 15)]
    cosine = [
        replace(one, learning_rate=rate)
        for one, rate in zip(epochs, [*rates, 1e-11], strict=True)
    ]
    panel = learning_curves({"seed1": cosine})["learning rate"]
    assert [one["epoch"] for one in points_of(panel) if one["falls"]] == [13, 14, 15]
    drawn = [one["drawn rate"] for one in points_of(panel)]
    assert drawn == pytest.approx([*rates, max(rates) / 1e4])


def test_an_axis_has_room_at_both_ends_and_without_values() -> None:
    low, high = padded([1.0, 2.0])
    assert low < 1 < 2 < high
    assert 1 - low == pytest.approx(high - 2)
    assert padded([3.0])[0] < 3 < padded([3.0])[1]
    for is_log in (False, True):
        first, last = padded([], is_log=is_log)
        assert first < last


def test_learning_curve_needs_an_epoch(tmp_path: Path) -> None:
    output = tmp_path / "curve.svg"
    empty = history(tmp_path, epochs=0, stop="interrupted")
    with pytest.raises(UserError, match=r"history\.jsonl: no epoch"):
        plot_learning_curve(history=empty, heading="tiny", outputs=[output])
    assert not output.exists()


def test_a_map_says_how_far_its_weights_spread(tmp_path: Path) -> None:
    output, sources = tmp_path / "attention.svg", len(SOURCE)
    even = np.full((len(TARGET), sources), 1 / sources)
    narrow = np.eye(len(TARGET), sources)
    mixed = np.where(np.arange(len(TARGET))[:, None] % 2, even, narrow)
    plot_attention_maps([even, narrow, mixed], SOURCE, TARGET, "tiny", [output])
    spreads = ["0.10, entropy 2.30", "1.00, entropy 0.00", "0.55, entropy 1.15"]
    assert {f"largest {spread}" for spread in spreads} <= svg_texts(output)
    drawn = " ".join(re.findall(">([^<]+)<", output.read_text("utf-8")))
    assert "of even weights over 10 tokens: largest 0.10, entropy 2.30." in drawn


def test_equal_numbers_give_equal_bytes(tmp_path: Path) -> None:
    weights = attention(2, len(TARGET), len(SOURCE))
    drawn = []
    for name in ("first", "second"):
        files = ("curve.svg", "curve.pdf", "attention.svg")
        outputs = [tmp_path / name / file for file in files]
        plot_learning_curve(
            history=history(tmp_path), heading="tiny", outputs=outputs[:2]
        )
        plot_attention_maps(weights, SOURCE, TARGET, "tiny", outputs[2:])
        drawn.append([output.read_bytes() for output in outputs])
    assert drawn[0] == drawn[1]
    assert b"<dc:date>" not in b"".join(drawn[0])
    # Every byte of a page is where its table of contents says.
    table = re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", drawn[0][1])
    assert table is not None
    assert re.match(rb"xref|\d+ 0 obj", drawn[0][1][int(table[1]) :])
