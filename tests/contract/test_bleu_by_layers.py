"""BLEU by the number of layers: what is drawn of which run, and what was not run."""

from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest

from convs2s.config.settings import Settings
from convs2s.paper.bleu_by_layers import Depth, layer_panels, plot_bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.paper.charts import padded
from tests.support.cells import bleu, write
from tests.support.documents import svg_texts

pytestmark = pytest.mark.usefixtures("in_folder")


def test_the_figure_has_the_mean_of_seeds_and_names_what_was_not_run(
    paper: Settings,
) -> None:
    measured = [
        cell for cell in cells(paper, "figure2") if cell.address.column == "bleu"
    ]
    seeds = {5: (20.0, 21.0, 25.0), 13: (22.5,)}
    scores = [
        write(path, bleu(after=0.0, before=score))
        for layers, found in seeds.items()
        for path, score in zip(measured[layers - 1].paths, found, strict=False)
    ]
    scale = paper.scale.model_copy(update={"stand_in": "captions"})
    outputs = [Path("figure2.svg"), Path("figure2.pdf")]
    plot_bleu_by_layers(
        replace(paper, scale=scale),
        "figure2",
        cells=measured,
        scores=scores,
        published=None,
        outputs=outputs,
        points=Path("points.csv"),
    )
    assert outputs[1].read_bytes().startswith(b"%PDF")
    texts = svg_texts(outputs[0])
    assert {
        "tokenized BLEU (0 to 100), before unknown words are replaced",
        "layers of the encoder or decoder",
        "not run: encoder 1-4, 6-12, 14-25; decoder 1-4, 6-25",
        "ours, mean ± standard deviation over seeds",
    } <= texts
    assert any("STAND-IN DATA: captions" in text for text in texts)
    points = pd.read_csv("points.csv")
    assert list(points.columns) == [column.name for column in fields(Depth)]
    assert len(points) == 50
    run = points[points["seeds"] > 0].fillna("").values.tolist()
    # The decoder's base is the encoder's: one model, shown on both curves.
    assert run == [
        ["encoder", 5, 20.61, 22.0, pytest.approx(7**0.5), 3],
        ["encoder", 13, 21.63, 22.5, "", 1],
        ["decoder", 5, 21.63, 22.5, "", 1],
    ]


@pytest.mark.parametrize("on_stand_in", [True, False])
def test_bars_end_a_deviation_from_the_mean_and_the_axis_has_room_for_them(
    on_stand_in: bool,
) -> None:
    network = Depth("encoder", 1, 20.0, 22.5, 0.5, 2)
    single = Depth("encoder", 2, None, 24.0, None, 1)
    panels = layer_panels([network, single], on_stand_in=on_stand_in)
    drawn = [
        [(row["low"], row["high"]) for row in panel["data"]["values"]]
        for panel in panels
    ]
    assert drawn == [[(22, 23), (24, 24)], [(20, 20)]]
    axes = [panel["layer"][-1]["encoding"]["y"]["scale"]["domain"] for panel in panels]
    own = [padded([22, 24]), padded([20])]
    assert axes == (own if on_stand_in else [padded([20, 24])] * 2)
