"""Pages of one HTML file each: templates, and what they hold of programs and styles."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_PACKAGE = "convs2s.paper.report"
_ENDS_A_SCRIPT = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)


@dataclass(frozen=True)
class Program:
    """A program that a page holds.

    Attributes:
        text: JavaScript, safe within a script element.
        digest: the page's policy runs no program but those of these digests.
    """

    text: Markup
    digest: str


def rendered(
    template: str, content: Mapping[str, object], programs: Iterable[str], styles: Iterable[str]
) -> str:
    """Return a page.

    Args:
        template: its name.
        content: what it shows; every text in it is escaped.
        programs: JavaScript, in the order to run.
        styles: style sheets, the later one wins.
    """
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "data"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    held = {"programs": list(map(_program, programs)), "styles": list(map(Markup, styles))}
    return environment.get_template(template).render(**content, **held)


def own(name: str) -> str:
    """Return a program or a style sheet of this project."""
    return files(_PACKAGE).joinpath("data", name).read_text("utf-8")


def _program(text: str) -> Program:
    """Return a program whose text cannot end the element that it stands in."""
    safe = _ENDS_A_SCRIPT.sub(r"\\x3C", text.replace("\r\n", "\n"))
    digest = base64.b64encode(hashlib.sha256(safe.encode()).digest()).decode("ascii")
    return Program(Markup(safe), f"sha256-{digest}")
