"""What the papers' tables say, all text."""

from collections.abc import Sequence

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.paper import tables
from convs2s.paper.cells import Cell, cells
from convs2s.paper.results import entries_of, results


def table(settings: Settings, name: str, scores: Sequence[str]) -> pd.DataFrame:
    """The table with those scores that are there."""
    measured = cells(settings, name)
    return frame_of(
        settings, name, results(measured, entries_of(settings, measured, scores))
    )


def frame_of(settings: Settings, name: str, found: Sequence[Cell]) -> pd.DataFrame:
    """The table with these cells."""
    rows = tables.table_rows(settings, name, found)
    texts = [{heading: value.text for heading, value in row.items()} for row in rows]
    return pd.DataFrame(texts, dtype=str)
