"""BLEU by the number of layers: what is drawn of which run, and what was not run."""

from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.bleu_by_layers import Depth, layer_panels, plot_bleu_by_layers
from convs2s.paper.cells import cells
from convs2s.paper.charts import padded
from tests.contract.documents import svg_texts
from tests.support.cells import bleu, write


@pytest.mark.usefixtures("in_folder")
def test_the_figure_has_the_mean_of_seeds_and_names_what_was_not_run(
    paper: Settings,
) -> None:
    figure = cells(paper, "figure2")
    measured = [cell for cell in figure if cell.address.column == "bleu"]
    scores = []
    for layers, found in ((5, [20.0, 21.0, 25.0]), (13, [22.5])):
        for path, score in zip(measured[layers - 1].paths, found, strict=False):
            scores.append(write(path, bleu(after=0.0, before=score)))
    scale = paper.scale.model_copy(update={"stand_in": "captions"})
    plot_bleu_by_layers(
        replace(paper, scale=scale),
        "figure2",
        cells=measured,
        scores=scores,
        published=None,
        outputs=[Path("figure2.svg")],
        points=Path("points.csv"),
    )
    texts = svg_texts(Path("figure2.svg"))
    assert {
        "not run: encoder 1-4, 6-12, 14-25; decoder 1-4, 6-25",
        "ours, mean ± standard deviation over seeds",
    } <= texts
    assert any("STAND-IN DATA: captions" in text for text in texts)
    heading, *points = Path("points.csv").read_text().splitlines()
    assert heading == "side,layers,paper,bleu,deviation,seeds"
    assert len(points) == 50
    # The decoder's base is the encoder's: one model, shown on both curves.
    assert [line for line in points if not line.endswith(",0")] == [
        "encoder,5,20.61,22.0,2.6457513110645907,3",
        "encoder,13,21.63,22.5,,1",
        "decoder,5,21.63,22.5,,1",
    ]


def test_bars_end_a_deviation_from_the_mean_and_networks_without_one_are_named() -> (
    None
):
    """Seeds whose scores have different signatures have no mean. The axis has room for the bars."""
    networks = [
        Depth("encoder", 1, 20.0, 22.5, 0.5, 2),
        Depth("encoder", 2, None, 24.0, None, 1),
        Depth("encoder", 3, 20.0, None, None, 2),
        Depth("encoder", 4, 20.0, None, None, 0),
    ]
    for on_stand_in, shown in (
        (True, [padded([22, 24]), padded([20])]),
        (False, [padded([20, 24])] * 2),
    ):
        panels = layer_panels(networks, on_stand_in=on_stand_in)
        ends = []
        axes = []
        for panel in panels:
            ends.append([(row["low"], row["high"]) for row in panel["data"]["values"]])
            axes.append(panel["layer"][-1]["encoding"]["y"]["scale"]["domain"])
        assert ends == [[(22, 23), (24, 24)], [(20, 20)] * 3]
        assert axes == shown
    assert panels[1]["encoding"]["x"]["title"][1:] == [
        "seeds scored by different metrics: encoder 3",
        "not run: encoder 4",
    ]
    ours, _ = layer_panels(networks[2:], on_stand_in=False)
    assert ours["title"] == "ours"
