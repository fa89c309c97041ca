"""One sentence's attention as a page that needs nothing else: the report's view of it, alone."""

from convs2s.attention_view import view
from convs2s.paper.attention_maps import ExampleAttention
from convs2s.paper.report.template import own, rendered

_READY = 'document.documentElement.dataset.ready = "yes";\n'


def attention_page(example: ExampleAttention) -> str:
    """Return the page, as HTML."""
    styles = [own("page.css"), view.style(), own("attention_page.css")]
    return rendered(
        "attention_page.html.j2",
        {"example": example},
        [view.program() + own("attention.js"), _READY],
        styles,
    )
