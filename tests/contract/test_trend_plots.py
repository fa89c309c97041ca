"""The papers' trends beside ours: which rows are drawn, and on which axes."""

from dataclasses import replace

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import Cell, cells
from convs2s.paper.charts import Panel, padded
from convs2s.paper.results import entries_of, results
from convs2s.paper.trends import trend_panels
from tests.support.cells import bleu, write

pytestmark = pytest.mark.usefixtures("in_folder")


def table7(settings: Settings, *scores: tuple[float, ...]) -> list[Cell]:
    """The first rows of table 7 with the scores of their first seeds."""
    measured = cells(settings, "table7")
    rows = [cell for cell in measured if cell.address.column == "bleu"]
    found = [
        write(path, bleu(after=50.0, before=score))
        for cell, seeds in zip(rows, scores, strict=False)
        for path, score in zip(cell.paths, seeds, strict=False)
    ]
    return results(measured, entries_of(settings, measured, found))


def scale_of(panel: Panel, channel: str) -> dict[str, object]:
    encodings = {**panel["encoding"], **panel["layer"][-1].get("encoding", {})}
    scale: dict[str, object] = encodings[channel]["scale"]
    return scale


@pytest.mark.parametrize("stand_in", [None, "captions"])
def test_on_stand_in_data_each_side_has_an_axis_of_its_own(
    paper: Settings, stand_in: str | None
) -> None:
    scale = paper.scale.model_copy(update={"stand_in": stand_in})
    settings = replace(paper, scale=scale)
    shown = table7(paper, (40.0, 41.0), (41.0, 42.0))
    values = [float(str(row.paper["bleu"])) for row in paper.paper["table7"].rows]
    ours = [40.5 - 0.5**0.5, 41.5 + 0.5**0.5]
    for rows, is_small, channel in ((2, True, "y"), (9, False, "x")):
        printed = values[:rows]
        panels = trend_panels(settings, "table7", shown, is_small=is_small)[0]
        own = [padded(printed), padded(ours)]
        both = [padded([*printed, *ours])] * 2
        axes = [scale_of(panel, channel)["domain"] for panel in panels]
        assert axes == (own if stand_in else both)


def test_a_column_with_a_trend_of_ours_has_a_pair_of_panels(paper: Settings) -> None:
    """The first one alone has the legend, and a wide axis is logarithmic."""
    shown = table7(paper, *((2.0**place,) for place in range(9)))
    panels = [panel for pair in trend_panels(paper, "table7", shown) for panel in pair]
    titles = ["BLEU, paper", "BLEU, ours", "Length ratio, ours"]
    assert [panel["title"] for panel in panels] == titles
    kinds = [scale_of(panel, "x")["type"] for panel in panels]
    assert kinds == ["log", "log", "linear"]
    colors = [scale_of(panel, "color") for panel in panels]
    assert colors[0] == colors[1]
    assert colors[0]["domain"] == ["3", "5", "7"]
    for is_small in (True, False):
        assert trend_panels(paper, "table7", table7(paper), is_small=is_small) == []
