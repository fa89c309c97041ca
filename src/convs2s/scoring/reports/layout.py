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
    header: Mapping[str, str]  # the subject of the report, such as the task and its models

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

    Templates can use two filters. ``underlined`` makes a heading of a line. ``aligned`` makes a
    table of lines whose cells are separated by bars; the first line is the table's header.
    """
    environment = Environment(
        loader=PackageLoader("convs2s.scoring.reports", "data"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def aligned_lines(text: str) -> str:
        header, *rows = [line.split("|") for line in text.splitlines()]
        return "\n".join(aligned(header, rows)) + "\n"

    environment.filters["aligned"] = aligned_lines
    environment.filters["underlined"] = lambda line: "\n".join(underlined(line.strip())) + "\n"
    return environment.get_template(template).render(content)
