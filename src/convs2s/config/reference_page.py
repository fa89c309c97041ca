"""The classes and tasks as text: docs/configuration.md, config.yaml, the table of all tasks."""

import textwrap
from collections.abc import Iterator

import yaml

from convs2s.config.json_schema import FILES
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
be left out. A mapping without one can be left out as well: its keys then have their defaults.
"""

_WIDTH = 100
_TYPES = {"object": "mapping", "array": "list"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}

_Row = tuple[str, str, str, str]  # of a table of the page: key, type, default, meaning


def reference() -> str:
    """Return docs/configuration.md: every key of every file, its type, default and meaning."""
    parts = [_INTRODUCTION]
    for file in FILES:
        schema = schema_of(file.section)
        parts.append(f"## {file.path}\n\n{schema['description']}\n")
        parts.append("| key | type | default | meaning |\n| --- | --- | --- | --- |")
        for key, type_, default, meaning in _rows(schema, "", {}):
            escaped = meaning.replace("|", "\\|")
            parts.append(f"| `{key}` | {type_} | {default} | {escaped} |")
        parts.append("")
    return "\n".join(parts)


def template() -> str:
    """Return config.yaml with every default, each key under its description as a comment."""
    schema = schema_of(Options)
    lines = [
        "# yaml-language-server: $schema=schemas/config.schema.json",
        _comment(schema["description"], 0),
        *_commented(schema, 0),
    ]
    return "\n".join(lines) + "\n"


def task_table(settings: Settings) -> str:
    """Return the tasks in the order of their names, as Markdown."""
    lines = [
        "| task | what it is | headline: model, runs | ask for |",
        "| --- | --- | --- | --- |",
    ]
    for name, task in sorted(settings.tasks.items()):
        runs = ", ".join(task.headline_runs())
        report = f"results/{name}/{task.metric}.txt"
        model = task.headline.model
        lines.append(f"| `{name}` | {task.description} | `{model}`, {runs} | `{report}` |")
    return "\n".join(lines) + "\n"


def _rows(mapping: Schema, prefix: str, told: dict[str, str]) -> Iterator[_Row]:
    """Yield a row for each key of a mapping and for those below it.

    ``told`` has the keys that rows were yielded for -> where, so that they are not told again.
    """
    for key, schema in mapping["properties"].items():
        path, meaning = prefix + key, schema["description"]
        default = _default(schema, key in mapping.get("required", ()))
        below = list(_mappings(schema, path))
        if len(below) != 1:
            yield path, _type(schema), default, meaning
            if below:
                yield from _rows_of_kinds(below, told)
            continue
        ((place, inner),) = below
        before = told.setdefault(str(inner["properties"]), place)
        if before == place:
            yield path, _type(schema), default, meaning
            yield from _rows(inner, f"{place}.", told)
        else:
            yield path, _type(schema), default, f"{meaning} Keys as in `{before}`."


def _mappings(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield each mapping with keys of its own that a value is or holds, with the path to it."""
    for option in alternatives(schema):
        if "properties" in option:
            yield path, option
        if isinstance(option.get("additionalProperties"), dict):
            yield from _mappings(option["additionalProperties"], f"{path}.NAME")
        if "items" in option:
            yield from _mappings(option["items"], f"{path}[]")


def _rows_of_kinds(mappings: list[tuple[str, Schema]], told: dict[str, str]) -> Iterator[_Row]:
    """Yield the rows of mappings in one place whose keys depend on the kind."""
    path = mappings[0][0]
    kinds = {constant_kind(option): option["properties"]["kind"] for _, option in mappings}
    meaning = " ".join(f"{name}: {schema['description']}" for name, schema in kinds.items())
    default = _default(mappings[0][1]["properties"]["kind"], False)
    yield f"{path}.kind", ", ".join(map(str, kinds)), default, meaning
    for _, option in mappings:
        for key, type_, default, meaning in _rows(option, f"{path}.", told):
            if key != f"{path}.kind":
                yield key, type_, default, f"{constant_kind(option)}: {meaning}"


def _type(schema: Schema) -> str:
    """Return the types that a value may have, with bounds, or what there is to choose from."""
    listed = ", ".join(map(yaml_on_one_line, choices(schema)))
    types = [listed] if listed else []
    for option in alternatives(schema):
        if not choices(option):
            signs = [f"{sign} {option[key]:.10g}" for key, sign in _BOUNDS.items() if key in option]
            name = _TYPES.get(option["type"], option["type"])
            types.append(f"{name} {' and '.join(signs)}".rstrip())
    return " or ".join(dict.fromkeys(types))


def _default(schema: Schema, is_required: bool) -> str:
    if is_required:
        return "required"
    return "" if "properties" in schema else f"`{yaml_on_one_line(schema['default'])}`"


def _commented(mapping: Schema, depth: int) -> Iterator[str]:
    """Yield the lines of a mapping that states every default."""
    indent = "  " * depth
    for key, schema in mapping["properties"].items():
        listed = f" One of {_type(schema)}." if choices(schema) else ""
        yield ("" if depth else "\n") + _comment(schema["description"] + listed, depth)
        if "properties" in schema:
            yield f"{indent}{key}:"
            yield from _commented(schema, depth + 1)
        else:
            yield f"{indent}{key}: {yaml_on_one_line(schema['default'])}"


def _comment(text: str, depth: int) -> str:
    mark = "  " * depth + "# "
    return textwrap.fill(
        text, _WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False
    )


def yaml_on_one_line(value: object) -> str:
    """Write a value on one line of YAML."""
    flow = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.removesuffix("\n").removesuffix("\n...")
