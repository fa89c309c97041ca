"""The page: one HTML file that fetches nothing; its programs come from installed packages."""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_PACKAGE = "convs2s.paper.report"
_DRAWS = "window.vegaEmbed = vegaEmbed;"
_ENDS_A_SCRIPT = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)


@dataclass(frozen=True)
class Program:
    """A program that the page holds.

    Attributes:
        text: JavaScript, safe within a script element.
        digest: the page's policy runs no program but those of these digests.
    """

    text: Markup
    digest: str


def render(content: Mapping[str, object]) -> str:
    """Return the page.

    Args:
        content: what the template shows; every text in it is escaped.
    """
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.j2")
    # The tables' program first: the page's own uses both.
    programs = [
        _program(text) for text in (_tables_program(), _charts_program(), _own("report.js"))
    ]
    styles = [Markup(text) for text in (_tables_style(), _own("report.css"))]
    return template.render(**content, programs=programs, styles=styles)


def embedded(image: bytes) -> str:
    """Return an SVG picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(image).decode('ascii')}"


def _program(text: str) -> Program:
    """Return a program whose text cannot end the element that it stands in."""
    safe = _ENDS_A_SCRIPT.sub(r"\\x3C", text.replace("\r\n", "\n"))
    digest = base64.b64encode(hashlib.sha256(safe.encode()).digest()).decode("ascii")
    return Program(Markup(safe), f"sha256-{digest}")


def _charts_program() -> str:
    """Return Vega, Vega-Lite and what embeds them, of the version that Altair writes for."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return str(vl_convert.javascript_bundle(_DRAWS, vl_version=version))


def _tables_program() -> str:
    """Return DataTables with jQuery, which it leaves as ``$``."""
    return files("itables").joinpath("html/dt_bundle.js").read_text("utf-8")


def _tables_style() -> str:
    return files("itables").joinpath("html/dt_bundle.css").read_text("utf-8")


def _own(name: str) -> str:
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")
