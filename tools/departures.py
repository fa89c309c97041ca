"""docs/departures.yaml: what the papers state about their systems, and whether it is so here.

``python tools/departures.py``, typed in a clone, prints docs/departures.md.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from configuration import yaml_on_one_line
from convs2s.config.load import load
from convs2s.config.messages import check_known, validated
from convs2s.config.section import Expecting, Items, Section, Text
from convs2s.config.settings import Settings
from convs2s.config.yaml_file import read_yaml
from convs2s.errors import UserError

SOURCE = "docs/departures.yaml"

_INTRODUCTION = """\
# Departures from the papers

This page is made from `docs/departures.yaml` (`python tools/departures.py`): change it there.
Tests compare each setting below with the configuration and import each name of the code.

{count} statements of both papers about how systems are built and trained: {departs} **depart**
here, {missing} are **missing**, {equal} are **equal**. ConvS2S is Gehring et al. (2017), LSTM is
Sutskever et al. (2014). Settings are those of scale `paper`; `config/scales` has the stand-ins of
smaller scales. Code is below `src/convs2s`. `config/models.yaml` marks guesses, where the papers
and their code are silent.
"""
_TITLES = {"departs": "Departs", "missing": "Missing", "equal": "Equal"}
_PAPERS = {"convs2s": "ConvS2S", "lstm": "LSTM"}


class Statement(Section):
    """A statement of a paper about how systems are built and trained."""

    paper: Literal["convs2s", "lstm"]
    """Gehring et al. (2017), or Sutskever et al. (2014)."""
    section: Text
    """Its section."""
    says: Text
    """The statement, in words of our own."""
    verdict: Literal["departs", "missing", "equal"]
    """Whether it is so here; missing: there is no result here yet."""
    here: Text | None = None
    """What is here instead, and why; null where settings and code say all."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Way to a value of the configuration, such as models.lstm.training.clip -> that value. In a
    list the way goes on by number, from 0, or by the name of a table's row."""
    code: Items[
        Annotated[
            str,
            Expecting(
                "expected MODULE:NAME in convs2s", r"^[a-z0-9_.]+:[A-Za-z0-9_.]+$"
            ),
        ]
    ] = ()
    """Where it is: modules below convs2s, and names in them."""


def read_statements(root: Path) -> list[Statement]:
    """Return the statements of a clone; a UserError names the one that is not as it should be."""
    entries = read_yaml(root / SOURCE, SOURCE)
    if not isinstance(entries, list):
        raise UserError(f"{SOURCE}: expected a list of statements")
    statements = []
    for number, entry in enumerate(entries, start=1):
        where = f"{SOURCE}: statement {number}"
        statement = validated(Statement, entry, where)
        if not (statement.settings or statement.code):
            raise UserError(f"{where}: expected settings or code: where it is")
        if statement.verdict != "equal" and statement.here is None:
            raise UserError(f"{where}: here: expected what is here instead, and why")
        statements.append(statement)
    return statements


def check_settings(statements: Sequence[Statement], settings: Settings) -> None:
    """Check that the configuration has the values that are stated of it; else a UserError."""
    for number, statement in enumerate(statements, start=1):
        for way, stated in statement.settings.items():
            where = f"{SOURCE}: statement {number}: settings: {way}"
            if (value := _value(settings, way, where)) != stated:
                raise UserError(
                    f"{where}: is {value!r} in the configuration, not {stated!r}: correct this "
                    "value and the verdict, or the configuration"
                )


def _value(settings: Settings, way: str, where: str) -> object:
    """Return the value of the configuration to which a way leads."""
    value: object = settings
    for name in way.split("."):
        if isinstance(value, tuple):
            names = [
                getattr(item, "system", str(place)) for place, item in enumerate(value)
            ]
            items = zip(names, value, strict=True)
            value = {name: item for name, item in items if names.count(name) == 1}
        known = value if isinstance(value, Mapping) else vars(value)
        check_known(where, "key", name, known)
        value = known[name]
    return to_jsonable_python(value)


def page(statements: Sequence[Statement]) -> str:
    """Return docs/departures.md: what departs and what is missing first."""
    counts = Counter[str](statement.verdict for statement in statements)
    lines = [_INTRODUCTION.format(count=len(statements), **counts)]
    for verdict, title in _TITLES.items():
        lines += [f"## {title}", "", "| paper, section | what it says | here | where |"]
        lines += ["| --- | --- | --- | --- |"]
        for statement in statements:
            if statement.verdict == verdict:
                cells = (cell.replace("|", "\\|") for cell in _cells(statement))
                lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _cells(statement: Statement) -> Iterator[str]:
    yield f"{_PAPERS[statement.paper]} {statement.section}"
    yield statement.says
    yield statement.here or ""
    stated = (
        f"`{way}: {yaml_on_one_line(value)}`"
        for way, value in statement.settings.items()
    )
    yield ", ".join([*stated, *(f"`{place}`" for place in statement.code)])


if __name__ == "__main__":
    STATEMENTS = read_statements(Path())
    check_settings(STATEMENTS, load(Path(), {}))
    print(page(STATEMENTS), end="")
