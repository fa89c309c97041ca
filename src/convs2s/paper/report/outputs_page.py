"""Two systems' outputs side by side as a page that needs nothing else."""

from convs2s.paper.report.template import own, rendered
from convs2s.scoring.side_by_side import SideBySide, told


def outputs_page(found: SideBySide) -> str:
    """Return the page, as HTML; it runs no program."""
    styles = [own("page.css"), own("outputs_page.css")]
    content = {"found": found, "told": list(told(found))}
    return rendered("outputs_page.html.j2", content, [], styles)
