"""Write schemas/, docs/configuration.md and config.yaml from the classes of the configuration.

Run ``python tools/configuration.py`` in a clone. With the JSON Schemas, editors complete and check
the files of the configuration.
"""

import json
import textwrap
from collections.abc import Collection, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import yaml

from convs2s.config.claims import Claim
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.file_reference import Download
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Table
from convs2s.config.published import PublishedModel
from convs2s.config.scale import Scale
from convs2s.config.section import Section
from convs2s.config.task import SHARED_WITH_TEXT, Task
from json_schema import Schema, alternatives, choices, constant_kind, schema_of

_INTRODUCTION = """\
# Configuration

This page is made from the classes in `src/convs2s/config/` by `python tools/configuration.py`. To
change it, change the classes.

Put the settings of one machine (mirrors, cores) into `config.local.yaml`. It has the same keys as
`config.yaml`, overrides it and is not under version control. `snakemake --config scale=demo`
overrides both files. `convs2s config --task NAME` prints all settings that apply to one task,
including defaults.

An unknown key, a key that is stated twice and a name that refers to nothing are errors.

In the tables, `a.b` is the key `b` in the mapping `a`, `a[].b` is the key `b` of each mapping in
the list `a`, and `a.NAME` is any name in the mapping `a`. A key with a default can be left out. A
mapping without a default can be left out too, unless it is required. Its keys then have their
defaults.
"""

_WIDTH = 100
_TYPES = {"object": "mapping", "array": "list"}
_BOUNDS = {
    "minimum": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "exclusiveMaximum": "<",
}

# A row of a table of the page: key, type, default, meaning.
_Row = tuple[str, str, str, str]


class ConfigurationFile(NamedTuple):
    """A file of the configuration. ``path`` may have NAME in it, for files with any name."""

    path: str
    schema: str  # name of its JSON Schema
    section: type[Section]
    holds: Literal["one", "names", "list"] = "one"
    """Whether the file has one section, a mapping of names to sections, or a list of sections."""


FILES = (
    ConfigurationFile("config.yaml", "config", Options),
    ConfigurationFile("config/tasks/NAME.yaml", "task", Task),
    ConfigurationFile("config/models.yaml", "models", ModelSettings, "names"),
    ConfigurationFile("config/decodings.yaml", "decodings", DecodingSettings, "names"),
    ConfigurationFile("config/scales/NAME.yaml", "scale", Scale),
    ConfigurationFile("config/downloads.yaml", "downloads", Download, "list"),
    ConfigurationFile(
        "config/models_published.yaml", "models_published", PublishedModel, "names"
    ),
    ConfigurationFile("config/paper.yaml", "paper", Table, "names"),
    ConfigurationFile("config/claims.yaml", "claims", Claim, "names"),
    ConfigurationFile("config/phrases.yaml", "phrases", Phrases, "names"),
    ConfigurationFile("config/costs.yaml", "costs", Costs),
)


@cache
def file_schema(name: str) -> Schema:
    """Return the JSON Schema of a file as a user writes it.

    Keys that ``extends`` or ``text`` supplies are not required.
    """
    (file,) = (file for file in FILES if file.schema == name)
    entry = schema_of(file.section)
    if file.section is ModelSettings:
        entry = _unless_stated("extends", entry)
    elif file.section is Task:
        entry = _unless_stated("text", entry, SHARED_WITH_TEXT)
    elif file.section is Options:
        entry = deepcopy(entry)
        overrides = entry["properties"]["overrides"]["properties"]
        changed = {
            "tasks": Task,
            "models": ModelSettings,
            "decodings": DecodingSettings,
        }
        for noun, section in changed.items():
            overrides[noun]["additionalProperties"] = _partial(schema_of(section))
    if file.holds == "names":
        entry = {"type": "object", "additionalProperties": entry}
    elif file.holds == "list":
        entry = {"type": "array", "items": entry}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": file.path,
        **entry,
        "description": schema_of(file.section)["description"],
    }


def as_json(name: str) -> str:
    """Return the content of the file NAME.schema.json."""
    return json.dumps(file_schema(name), indent=2, ensure_ascii=False) + "\n"


def _unless_stated(key: str, schema: Schema, left_out: Collection[str] = ()) -> Schema:
    """Return a schema that requires keys only if ``key`` is not stated.

    ``key`` names another entry, which supplies the missing keys. If it is stated, the keys in
    ``left_out`` are unknown.
    """
    partial = _partial(schema)
    for name in left_out:
        del partial["properties"][name]
    is_stated = {"required": [key], "properties": {key: {"type": "string"}}}
    return {"type": "object", "if": is_stated, "then": partial, "else": schema}


def _partial(schema: Schema) -> Schema:
    """Return a schema without required keys at any depth of mappings.

    Mappings in lists keep theirs, because a list replaces the other list as a whole.
    """
    partial = {
        key: value for key, value in schema.items() if key not in ("required", "oneOf")
    }
    for several in ("anyOf", "oneOf"):
        # anyOf: without required keys, a value may fit several options.
        if several in schema:
            partial["anyOf"] = [_partial(option) for option in schema[several]]
    if "properties" in schema:
        partial["properties"] = {
            key: _partial(below) for key, below in schema["properties"].items()
        }
    return partial


def reference() -> str:
    """Return docs/configuration.md: every key of every file with type, default and meaning."""
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
    """Return config.yaml: every key at its default, below its description as a comment."""
    schema = schema_of(Options)
    lines = [
        "# yaml-language-server: $schema=schemas/config.schema.json",
        _comment(schema["description"], 0),
        *_commented(schema, 0),
    ]
    return "\n".join(lines) + "\n"


def _rows(mapping: Schema, prefix: str, told: dict[str, str]) -> Iterator[_Row]:
    """Yield a row for each key of a mapping and for the keys of the mappings in it.

    ``told`` maps the keys of each mapping that has its rows to its path, so that the second mapping
    with the same keys only refers to the first.
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
    """Yield each mapping with known keys that a value is or contains, with the path to it."""
    for option in alternatives(schema):
        if "properties" in option:
            yield path, option
        if isinstance(option.get("additionalProperties"), dict):
            yield from _mappings(option["additionalProperties"], f"{path}.NAME")
        if "items" in option:
            yield from _mappings(option["items"], f"{path}[]")


def _rows_of_kinds(
    mappings: list[tuple[str, Schema]], told: dict[str, str]
) -> Iterator[_Row]:
    """Yield the rows of several mappings with the same path, whose keys depend on their kind."""
    path = mappings[0][0]
    kinds = {
        constant_kind(option): option["properties"]["kind"] for _, option in mappings
    }
    meaning = " ".join(
        f"{name}: {schema['description']}" for name, schema in kinds.items()
    )
    default = _default(mappings[0][1]["properties"]["kind"], False)
    yield f"{path}.kind", ", ".join(map(str, kinds)), default, meaning
    for _, option in mappings:
        for key, type_, default, meaning in _rows(option, f"{path}.", told):
            if key != f"{path}.kind":
                yield key, type_, default, f"{constant_kind(option)}: {meaning}"


def _type(schema: Schema) -> str:
    """Return the types that a value may have, with their bounds, and the values to choose from."""
    listed = ", ".join(map(yaml_on_one_line, choices(schema)))
    types = [listed] if listed else []
    for option in alternatives(schema):
        if not choices(option):
            signs = [
                f"{sign} {option[key]:.10g}"
                for key, sign in _BOUNDS.items()
                if key in option
            ]
            name = _TYPES.get(option["type"], option["type"])
            types.append(f"{name} {' and '.join(signs)}".rstrip())
    return " or ".join(dict.fromkeys(types))


def _default(schema: Schema, is_required: bool) -> str:
    if is_required:
        return "required"
    return "" if "properties" in schema else f"`{yaml_on_one_line(schema['default'])}`"


def _commented(mapping: Schema, depth: int) -> Iterator[str]:
    """Yield the lines of a mapping with every key at its default."""
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
        text,
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=mark,
        break_on_hyphens=False,
    )


def yaml_on_one_line(value: object) -> str:
    """Return a value as YAML on one line."""
    flow = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10_000
    )
    return flow.removesuffix("\n").removesuffix("\n...")


def write(folder: Path) -> None:
    """Write the schemas, docs/configuration.md and config.yaml into the folder of a clone."""
    texts = {
        f"schemas/{file.schema}.schema.json": as_json(file.schema) for file in FILES
    }
    texts |= {"docs/configuration.md": reference(), "config.yaml": template()}
    for place, text in texts.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path())
