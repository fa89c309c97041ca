"""Tables of numbers that are written as text."""

from typing import Any

import yaml

from tests.support.refusals import rows


def values(table: str) -> list[list[Any]]:
    """Return the cells of a table with => between them, each read as YAML."""
    return [[yaml.safe_load(cell) for cell in row] for row in rows(table)]
