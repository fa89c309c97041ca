"""What the papers' tables show, read from their cells."""

from collections.abc import Sequence

import pandas as pd

from convs2s.config.settings import Settings
from convs2s.paper.cells import Cell, cells
from convs2s.paper.results import entries_of, results
from convs2s.paper.tables import table_rows


def table(settings: Settings, name: str, scores: Sequence[str]) -> pd.DataFrame:
    """The table with those scores that are there."""
    measured = cells(settings, name)
    found = results(measured, entries_of(settings, measured, scores))
    return frame_of(settings, name, found)


def frame_of(settings: Settings, name: str, found: Sequence[Cell]) -> pd.DataFrame:
    """What a table says, all text."""
    rows = table_rows(settings, name, found)
    texts = [{heading: value.text for heading, value in row.items()} for row in rows]
    return pd.DataFrame(texts, dtype=str)
