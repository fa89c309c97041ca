"""Write reports as JSON and, with the same content, as plain text."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from convs2s.files.text import write_json, write_text
from convs2s.scoring.text_table import aligned, underlined


@dataclass(frozen=True)
class Report:
    """The two files of a report, and how it begins."""

    text: Path
    json: Path
    stand_in: str | None  # describes the data if it is not the paper's
    # The subject of the report, such as the task and its models.
    header: Mapping[str, str]

    def write(
        self,
        template: str,
        **content: object,
    ) -> None:
        """Write both files. The text is rendered from ``content`` by a template of ``data/``."""
        write_json(self.json, {"stand_in": self.stand_in, **self.header, **content})
        beginning = {"stand_in": self.stand_in, "header": self.header}
        write_text(self.text, render_text(template, **beginning, **content))


def render_text(template: str, **content: object) -> str:
    """Return the text that a template of ``data/`` makes of ``content``.

    Besides the filter of `text_templates`, templates can use ``underlined``, which makes a heading
    of a line.
    """
    templates = text_templates("convs2s.scoring.reports")
    templates.filters["underlined"] = lambda line: (
        "\n".join(underlined(line.strip())) + "\n"
    )
    return templates.get_template(template).render(content)


def text_templates(package: str) -> Environment:
    """Return the templates of texts in the folder ``data/`` of a package.

    They can use the filter ``aligned``. It makes a table of lines whose cells are separated by
    bars; the first line is the table's header.
    """
    environment = Environment(
        loader=PackageLoader(package, "data"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["aligned"] = _aligned_lines
    return environment


def _aligned_lines(text: str) -> str:
    header, *rows = [line.split("|") for line in text.splitlines()]
    return "\n".join(aligned(header, rows)) + "\n"
