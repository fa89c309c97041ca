"""BLEU by the number of layers: what is drawn of which run, and what was not run."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from convs2s.config.settings import Settings
from convs2s.paper.bleu_by_layers import (
    Depth,
    depths,
    layer_panels,
    plot_bleu_by_layers,
)
from convs2s.paper.cells import Cell
from convs2s.paper.charts import as_spec, padded
from convs2s.paper.results import entries_of, results
from tests.support.cells import bleu, cells, write
from tests.support.documents import svg_texts

pytestmark = pytest.mark.usefixtures("in_folder")


def run(found: list[Cell], layers: int, *scores: float) -> list[str]:
    """Write the scores of the first seeds of an encoder of so many layers."""
    cell = [one for one in found if one.address.column == "bleu"][layers - 1]
    pairs = zip(cell.paths, scores, strict=False)
    return [write(path, bleu(after=0.0, before=score)) for path, score in pairs]


def test_each_network_has_the_mean_of_its_seeds(paper: Settings) -> None:
    measured = cells(paper, "figure2")
    scores = [*run(measured, 5, 20.0, 21.0, 25.0), *run(measured, 13, 22.5)]
    ours = results(measured, entries_of(paper, measured, scores))
    found = {(one.side, one.layers): one for one in depths(paper, "figure2", ours)}
    assert len(found) == 50
    five = found["encoder", 5]
    assert (five.paper, five.bleu, five.seeds) == (20.61, 22.0, 3)
    assert five.deviation == pytest.approx(7**0.5)
    # The decoder's base is the encoder's: one model, shown on both curves.
    for base in (found["encoder", 13], found["decoder", 5]):
        assert (base.paper, base.bleu, base.deviation, base.seeds) == (
            21.63,
            22.5,
            None,
            1,
        )
    other = found["decoder", 25]
    assert (other.paper, other.bleu, other.deviation, other.seeds) == (
        None,
        None,
        None,
        0,
    )
    not_asked_for = depths(paper, "figure2", [])[4]
    assert not_asked_for == replace(five, bleu=None, deviation=None, seeds=0)


def test_the_figure_names_its_axes_and_what_was_not_run(paper: Settings) -> None:
    measured = cells(paper, "figure2")
    on_captions = replace(
        paper, scale=paper.scale.model_copy(update={"stand_in": "captions"})
    )
    scores = [*run(measured, 5, 20.0, 21.0), *run(measured, 13, 22.5)]
    outputs = [Path("figure2.svg"), Path("figure2.pdf")]
    plot_bleu_by_layers(
        on_captions,
        "figure2",
        cells=measured,
        scores=scores,
        published=None,
        outputs=outputs,
        points=Path("figure2.points.csv"),
    )
    assert outputs[1].read_bytes().startswith(b"%PDF")
    texts = svg_texts(outputs[0])
    assert {
        "tokenized BLEU (0 to 100) before replacement",
        "layers of the encoder or decoder",
        "not run: encoder 1-4, 6-12, 14-25; decoder 1-4, 6-25",
        "ours, mean ± standard deviation over seeds",
        "encoder",
        "decoder",
    } <= texts
    assert any("STAND-IN DATA: captions" in text for text in texts)
    points = pd.read_csv("figure2.points.csv")
    assert list(points.columns) == [column.name for column in fields(Depth)]
    assert list(points["bleu"].dropna()) == [20.5, 22.5, 22.5]
    assert list(points["paper"].dropna()) == [20.61, 21.17, 21.63, 21.09, 21.63, 21.24]


def test_bars_end_a_deviation_from_the_mean_and_the_axis_has_room_for_them() -> None:
    network = Depth("encoder", 1, 20.0, 22.5, 0.5, 2)
    single = Depth("encoder", 2, None, 24.0, None, 1)
    panels = layer_panels([network, single], on_stand_in=True)
    specs: list[Any] = [as_spec(panel, "a figure") for panel in panels]
    drawn = [
        [(row["low"], row["high"]) for row in spec["data"]["values"]] for spec in specs
    ]
    assert drawn == [[(22, 23), (24, 24)], [(20, 20)]]
    assert specs[0]["layer"][0]["encoding"]["y"]["scale"]["domain"] == padded([22, 24])
