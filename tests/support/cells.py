"""The cells of the papers' tables, with the paths that the workflow gives their scores."""

from convs2s.config.settings import Settings
from convs2s.paper import cells as paper
from convs2s.paper.cells import Cell
from convs2s.pipeline.layout import Layout


def cells(settings: Settings, name: str) -> list[Cell]:
    """Return the cells of a table, as the rules have them."""
    layout = Layout(settings.scale.results_dir, settings.scale.downloads_dir)
    return paper.cells(settings, name, layout.run_files)
