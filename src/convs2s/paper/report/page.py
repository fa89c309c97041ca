"""The page: one HTML file that fetches nothing; its programs come from installed packages."""

import base64
from collections.abc import Mapping
from importlib.resources import files

import vl_convert

from convs2s.attention_view import view
from convs2s.paper.charts import VEGA_LITE
from convs2s.paper.report.template import own, rendered

_DRAWS = "window.vegaEmbed = vegaEmbed;"


def render(content: Mapping[str, object]) -> str:
    """Return the page.

    Args:
        content: what the template shows; every text in it is escaped.
    """
    # The tables' program first: the page's own uses both.
    programs = [
        _tables_program(),
        _charts_program(),
        view.program() + own("attention.js"),
        own("report.js"),
    ]
    styles = [_tables_style(), own("page.css"), view.style(), own("report.css")]
    return rendered("report.html.j2", content, programs, styles)


def embedded(image: bytes) -> str:
    """Return an SVG picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(image).decode('ascii')}"


def _charts_program() -> str:
    """Return Vega, Vega-Lite and what embeds them, of the version that Altair writes for."""
    return str(vl_convert.javascript_bundle(_DRAWS, vl_version=VEGA_LITE))


def _tables_program() -> str:
    """Return DataTables with jQuery, which it leaves as ``$``."""
    return files("itables").joinpath("html/dt_bundle.js").read_text("utf-8")


def _tables_style() -> str:
    return files("itables").joinpath("html/dt_bundle.css").read_text("utf-8")
