"""The papers' trends beside ours: which rows are drawn, and on which axes."""

from dataclasses import replace

import pytest

from convs2s.config.settings import Settings
from convs2s.paper.cells import cells
from convs2s.paper.charts import padded
from convs2s.paper.results import entries_of, results
from convs2s.paper.trends import trend_panels
from tests.support.cells import bleu, write

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.mark.parametrize("stand_in", [None, "captions"])
def test_on_stand_in_data_each_side_has_an_axis_of_its_own(
    paper: Settings, stand_in: str | None
) -> None:
    scale = paper.scale.model_copy(update={"stand_in": stand_in})
    settings = replace(paper, scale=scale)
    measured = cells(paper, "table7")
    first, second = [one for one in measured if one.address.column == "bleu"][:2]
    paths = (*first.paths[:2], *second.paths[:2])
    found = [
        write(path, bleu(after=50.0, before=score))
        for path, score in zip(paths, (40.0, 41.0, 41.0, 42.0), strict=True)
    ]
    shown = results(measured, entries_of(paper, measured, found))
    printed = [float(str(row.paper["bleu"])) for row in paper.paper["table7"].rows]
    ours = [40.5 - 0.5**0.5, 41.5 + 0.5**0.5]
    for theirs, is_small, channel in ((printed[:2], True, "y"), (printed, False, "x")):
        axes = []
        for panel in trend_panels(settings, "table7", shown, is_small=is_small)[0]:
            encodings = panel["encoding"] | panel["layer"][-1].get("encoding", {})
            axes.append(encodings[channel]["scale"]["domain"])
        if stand_in:
            assert axes == [padded(theirs), padded(ours)]
        else:
            assert axes == [padded([*theirs, *ours])] * 2
