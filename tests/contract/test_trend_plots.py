"""The papers' trends beside ours: which rows are drawn, and on which axes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import Cell
from convs2s.paper.charts import Panel, as_spec, padded
from convs2s.paper.results import entries_of, results
from convs2s.paper.trends import trend_panels
from tests.support.cells import bleu, cells, write


@pytest.fixture
def shown(
    paper: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Cell]:
    """Two of three rows of the first kernel width of table 7, with two seeds each."""
    monkeypatch.chdir(tmp_path)
    measured = [
        cell for cell in cells(paper, "table7") if cell.address.column == "bleu"
    ]
    found = [
        write(path, bleu(after=50.0, before=40.0 + cell.address.row + seed))
        for cell in measured[:2]
        for seed, path in enumerate(cell.paths[:2])
    ]
    return results(measured, entries_of(paper, measured, found))


def axis(panel: Panel, channel: str) -> object:
    """The ends of the axis of values."""
    spec: Any = as_spec(panel, "a trend")
    return encoding(spec)[channel]["scale"]["domain"]


def encoding(spec: Any) -> dict[str, Any]:
    """What the points show."""
    return {**spec["encoding"], **spec["layer"][-1].get("encoding", {})}


@pytest.mark.parametrize("stand_in", [None, "captions"])
def test_on_stand_in_data_each_side_has_an_axis_of_its_own(
    paper: Settings, shown: list[Cell], stand_in: str | None
) -> None:
    scale = paper.scale.model_copy(update={"stand_in": stand_in})
    settings = replace(paper, scale=scale)
    values = [float(str(row.paper["bleu"])) for row in paper.paper["table7"].rows]
    spread = 0.5**0.5
    ours = [40.5 - spread, 41.5 + spread]
    for rows, is_small, channel in ((2, True, "y"), (9, False, "x")):
        printed = values[:rows]
        own, both = [padded(printed), padded(ours)], [padded([*printed, *ours])] * 2
        [panels] = trend_panels(settings, "table7", shown, is_small=is_small)
        assert [axis(panel, channel) for panel in panels] == (own if stand_in else both)


def test_without_a_trend_of_ours_nothing_is_drawn(
    paper: Settings, shown: list[Cell]
) -> None:
    nothing = [cell for cell in cells(paper, "table7") if cell.address.column == "bleu"]
    one_row = [shown[0], *nothing[1:]]
    assert (
        trend_panels(paper, "table7", one_row, is_small=True)
        == trend_panels(paper, "table7", one_row)
        == []
    )


def test_the_first_panel_alone_has_the_legend_and_a_wide_axis_is_logarithmic(
    paper: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measured = cells(paper, "table7")
    paths = [cell.paths[0] for cell in measured if cell.address.column == "bleu"]
    found = [
        write(path, bleu(after=0.0, before=2.0**place))
        for place, path in enumerate(paths)
    ]
    shown = results(measured, entries_of(paper, measured, found))
    columns = trend_panels(paper, "table7", shown)
    specs: list[Any] = [as_spec(panel, "") for panels in columns for panel in panels]
    titles = ["BLEU, paper", "BLEU, ours", "Length ratio, ours"]
    assert [spec["title"] for spec in specs] == titles
    marks = list(map(encoding, specs))
    assert [mark["color"]["legend"] is None for mark in marks] == [False, True, True]
    assert [mark["x"]["scale"]["type"] for mark in marks] == ["log", "log", "linear"]
