"""The classes and tasks as text: docs/configuration.md, config.yaml, the table of all tasks."""

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from convs2s.config.json_schema import FILES, ConfigurationFile
from convs2s.config.options import Options
from convs2s.config.section import Schema, alternatives, choices, constant_kind, schema_of
from convs2s.config.settings import Settings

_INTRODUCTION = """\
# Configuration

This page is made from the classes in `src/convs2s/config/` (`convs2s config --reference`); change
those.

Settings of one machine (mirrors, cores) go into `config.local.yaml`, which has the keys of
`config.yaml`, wins over it and is not under version control. `snakemake --config scale=demo` wins
over both. `convs2s config --task NAME` prints all that applies to one task, defaults included.

A key that no class knows, a key stated twice and a name that refers to nothing are errors.

How to read the tables: `a.b` is the key `b` inside of the mapping `a`; `a[].b` is the key `b` of
each mapping in the list `a`; `a.NAME` stands for any name inside of `a`. A key with a default can
be left out. A mapping without one can be left out as well: its keys then have theirs.
"""

_WIDTH = 100
_TYPES = {"object": "mapping", "array": "list"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


class _Row(NamedTuple):
    """A row of a table of the page."""

    key: str
    kind: str
    default: str
    meaning: str

    def saying(self, more: str) -> "_Row":
        """Return the row with a sentence added to its meaning."""
        return self._replace(meaning=f"{self.meaning} {more}")

    def __str__(self) -> str:
        cells = (f"`{self.key}`", self.kind, self.default, self.meaning.replace("|", "\\|"))
        return f"| {' | '.join(cells)} |"


def reference() -> str:
    """Return docs/configuration.md: every key of every file, its type, default and meaning."""
    return "\n".join([_INTRODUCTION, *map(_section, FILES)])


def template() -> str:
    """Return config.yaml with every default, each key under its description as a comment."""
    schema = schema_of(Options)
    lines = [
        "# yaml-language-server: $schema=schemas/config.schema.json",
        _comment(schema["description"], 0),
        *_commented(schema, 0),
    ]
    return "\n".join(lines) + "\n"


def _section(file: ConfigurationFile) -> str:
    schema = schema_of(file.section)
    rows = "\n".join(map(str, _rows(schema, "", {})))
    return (
        f"## {file.path}\n\n{schema['description']}\n\n"
        f"| key | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}\n"
    )


def _rows(mapping: Schema, prefix: str, told: dict[str, str]) -> Iterator[_Row]:
    """Yield a row for each key of a mapping and for those below it.

    Args:
        mapping: the schema of the mapping.
        prefix: what its keys begin with.
        told: keys that rows were yielded for -> where, so that they are not told again.
    """
    for key, schema in mapping["properties"].items():
        path = prefix + key
        row = _Row(
            path, _type(schema), _default(schema, key in mapping.get("required", ())), _text(schema)
        )
        below = list(_mappings(schema, path))
        if len(below) > 1:
            yield row
            yield from _rows_of_kinds(below, told)
        elif below:
            ((place, one),) = below
            before = told.setdefault(str(one["properties"]), place)
            yield row if before == place else row.saying(f"Keys as in `{before}`.")
            yield from _rows(one, f"{place}.", told) if before == place else ()
        else:
            yield row


def _mappings(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield each mapping with keys of its own that a value is or holds, with the path to it."""
    for one in alternatives(schema):
        if "properties" in one:
            yield path, one
        if isinstance(one.get("additionalProperties"), dict):
            yield from _mappings(one["additionalProperties"], f"{path}.NAME")
        if "items" in one:
            yield from _mappings(one["items"], f"{path}[]")


def _rows_of_kinds(mappings: list[tuple[str, Schema]], told: dict[str, str]) -> Iterator[_Row]:
    """Yield the rows of mappings in one place whose keys depend on the kind."""
    path = mappings[0][0]
    kinds = [(constant_kind(one), one["properties"]["kind"]) for _, one in mappings]
    names = ", ".join(str(name) for name, _ in kinds)
    meaning = " ".join(f"{name}: {_text(schema)}" for name, schema in kinds)
    yield _Row(f"{path}.kind", names, _default(kinds[0][1], False), meaning)
    for _, one in mappings:
        for row in _rows(one, f"{path}.", told):
            if row.key != f"{path}.kind":
                yield row._replace(meaning=f"{constant_kind(one)}: {row.meaning}")


def _type(schema: Schema) -> str:
    """Return the types that a value may have, with bounds, or what there is to choose from."""
    listed = ", ".join(map(_yaml, choices(schema)))
    types = [_bounded(one) for one in alternatives(schema) if not choices(one)]
    return " or ".join(dict.fromkeys([listed, *types] if listed else types))


def _bounded(schema: Schema) -> str:
    kind = schema["type"]
    bounds = [f"{sign} {schema[key]:.10g}" for key, sign in _BOUNDS.items() if key in schema]
    return f"{_TYPES.get(kind, kind)} {' and '.join(bounds)}".rstrip()


def _default(schema: Schema, is_required: bool) -> str:
    if is_required:
        return "required"
    return "" if "properties" in schema else f"`{_yaml(schema['default'])}`"


def _text(schema: Schema) -> str:
    return str(schema["description"])


def _commented(mapping: Schema, depth: int) -> Iterator[str]:
    """Yield the lines of a mapping that states every default."""
    indent = "  " * depth
    for key, schema in mapping["properties"].items():
        listed = f" One of {_type(schema)}." if choices(schema) else ""
        yield ("" if depth else "\n") + _comment(_text(schema) + listed, depth)
        if "properties" in schema:
            yield f"{indent}{key}:"
            yield from _commented(schema, depth + 1)
        else:
            yield f"{indent}{key}: {_yaml(schema['default'])}"


def _comment(text: str, depth: int) -> str:
    mark = "  " * depth + "# "
    return textwrap.fill(
        text, _WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False
    )


def _yaml(value: object) -> str:
    """Write a value on one line of YAML."""
    flow = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.removesuffix("\n").removesuffix("\n...")


def task_table(settings: Settings) -> str:
    """Return the tasks in the order of their names, as Markdown."""
    return "".join(f"{line}\n" for line in _lines(settings))


def _lines(settings: Settings) -> Iterator[str]:
    yield "| task | what it is | headline: model, runs | ask for |"
    yield "| --- | --- | --- | --- |"
    for name, task in sorted(settings.tasks.items()):
        runs = ", ".join(task.headline_runs())
        report = f"results/{name}/{task.metric}.txt"
        yield f"| `{name}` | {task.description} | `{task.headline.model}`, {runs} | `{report}` |"
