"""Two systems' outputs side by side as a page that needs nothing else."""

from convs2s.paper.report.template import own, rendered
from convs2s.scoring.comparison import OutputComparison


def outputs_page(comparison: OutputComparison) -> str:
    """Return the page, as HTML; it runs no program."""
    styles = [own("page.css"), own("outputs_page.css")]
    content = {"comparison": comparison}
    return rendered("outputs_page.html.j2", content, [], styles)
