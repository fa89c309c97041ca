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
from convs2s.paper.attention_maps import map_columns, plot_attention_maps
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


def test_a_long_learning_curve_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "curve.svg"
    plot_learning_curve(
        history=history(tmp_path, epochs=80), heading="tiny", outputs=[output]
    )
    assert "stopped" not in output.read_text("utf-8")


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


@pytest.mark.parametrize("ratio", [1.0, 1.5, 40.0, 1e9, 1e200])
@pytest.mark.parametrize(("pixels", "radius"), [(220, 7.2), (80, 3.1)])
def test_points_keep_off_the_ends_of_a_logarithmic_axis(
    ratio: float, pixels: int, radius: float
) -> None:
    low, high = map(math.log, padded([2.5, 2.5 * ratio], is_log=True))
    for value in (2.5, 2.5 * ratio):
        place = pixels * (math.log(value) - low) / (high - low)
        assert radius < place < pixels - radius


def test_an_axis_has_room_at_both_ends_and_without_values() -> None:
    low, high = padded([1.0, 2.0])
    assert low < 1 < 2 < high
    assert 1 - low == pytest.approx(high - 2)
    assert padded([3.0])[0] < 3 < padded([3.0])[1]
    for is_log in (False, True):
        first, last = padded([], is_log=is_log)
        assert first < last


def test_a_rate_of_zero_has_no_place_on_a_logarithmic_axis() -> None:
    assert padded([0.0, 0.1], is_log=True) == padded([0.1], is_log=True)


def test_a_loss_beyond_all_numbers_is_drawn(tmp_path: Path) -> None:
    path = history(tmp_path)
    rows = [json.loads(row) for row in path.read_text("utf-8").splitlines()]
    path.write_text(
        "\n".join(json.dumps(row | {"train_loss": 1e4}) for row in rows), "utf-8"
    )
    plot_learning_curve(history=path, heading="tiny", outputs=[tmp_path / "curve.svg"])
    assert (tmp_path / "curve.svg").stat().st_size > 0


def test_learning_curve_needs_an_epoch(tmp_path: Path) -> None:
    output = tmp_path / "curve.svg"
    empty = history(tmp_path, epochs=0, stop="interrupted")
    with pytest.raises(UserError, match=r"history\.jsonl: no epoch"):
        plot_learning_curve(history=empty, heading="tiny", outputs=[output])
    assert not output.exists()


def test_attention_maps_show_each_layer_and_word(tmp_path: Path) -> None:
    outputs = [tmp_path / "attention.svg", tmp_path / "attention.png"]
    weights = attention(3, len(TARGET), len(SOURCE))
    plot_attention_maps(weights, SOURCE, TARGET, "tiny · small", outputs)
    drawn = outputs[0].read_text("utf-8")
    for layer in (1, 2, 3):
        assert f">layer {layer}<" in drawn
    assert ">tiny · small<" in drawn
    assert drawn.count(">paie<") == drawn.count(">pays<") == 3
    assert drawn.count(">$<") == 3 * (2 + 1)
    assert outputs[1].read_bytes().startswith(b"\x89PNG")


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


def test_maps_of_long_sentences_are_no_wider_as_their_words_take_less(
    tmp_path: Path,
) -> None:
    widths = []
    for count in (20, 30):
        output, words = tmp_path / f"{count}.svg", ["w"] * count
        plot_attention_maps(attention(1, count, count), words, words, "tiny", [output])
        width = re.search(r'<svg[^>]* width="([\d.]+)"', output.read_text("utf-8"))
        assert width is not None
        widths.append(float(width[1]))
    assert widths[1] == pytest.approx(widths[0], rel=0.05)


def test_long_words_are_cut(tmp_path: Path) -> None:
    output = tmp_path / "attention.svg"
    plot_attention_maps(
        attention(1, 1, 2), ["w" * 60, "</s>"], ["</s>"], "tiny", [output]
    )
    assert f">{'w' * 23}…<" in output.read_text("utf-8")


def test_attention_needs_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="10 source positions, but there are 6 target and 9"
    ):
        plot_attention_maps(
            attention(1, 6, 10),
            SOURCE[1:],
            TARGET,
            "tiny",
            [tmp_path / "attention.svg"],
        )


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


@pytest.mark.parametrize(("maps", "columns"), [(1, 1), (3, 3), (8, 4)])
def test_maps_fill_their_grid(maps: int, columns: int) -> None:
    assert map_columns(maps, 30, 30) == columns
