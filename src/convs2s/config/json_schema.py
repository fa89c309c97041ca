"""JSON Schemas of whole files, by which editors complete and check the configuration.

``python -m convs2s.config.json_schema FOLDER`` writes them.
"""

import json
import sys
from collections.abc import Collection
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from convs2s.config.claims import Claim
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.file_reference import Download
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Table
from convs2s.config.scale import Scale
from convs2s.config.section import Schema, Section, schema_of
from convs2s.config.task import SHARED_WITH_TEXT, Task


class ConfigurationFile(NamedTuple):
    """A file of the configuration: its path, where NAME is any name, and what it holds."""

    path: str
    schema: str  # name of its JSON Schema
    section: type[Section]
    holds: Literal["one", "names", "list"] = "one"
    """One section, names with one each, or a list of them."""


FILES = (
    ConfigurationFile("config.yaml", "config", Options),
    ConfigurationFile("config/tasks/NAME.yaml", "task", Task),
    ConfigurationFile("config/models.yaml", "models", ModelSettings, "names"),
    ConfigurationFile("config/decodings.yaml", "decodings", DecodingSettings, "names"),
    ConfigurationFile("config/scales/NAME.yaml", "scale", Scale),
    ConfigurationFile("config/downloads.yaml", "downloads", Download, "list"),
    ConfigurationFile("config/paper.yaml", "paper", Table, "names"),
    ConfigurationFile("config/claims.yaml", "claims", Claim, "names"),
    ConfigurationFile("config/phrases.yaml", "phrases", Phrases, "names"),
    ConfigurationFile("config/costs.yaml", "costs", Costs),
)


@cache
def file_schema(name: str) -> Schema:
    """Return the JSON Schema of a file as it is stated, before anything is merged into it."""
    (file,) = (file for file in FILES if file.schema == name)
    entry = schema_of(file.section)
    if file.section is ModelSettings:
        entry = _unless_stated("extends", entry)
    elif file.section is Task:
        entry = _unless_stated("text", entry, SHARED_WITH_TEXT)
    elif file.section is Options:
        entry = deepcopy(entry)
        overrides = entry["properties"]["overrides"]["properties"]
        changed = {"tasks": Task, "models": ModelSettings, "decodings": DecodingSettings}
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


def write_schemas(folder: Path) -> None:
    """Write the JSON Schema of each file of the configuration as NAME.schema.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (folder / f"{file.schema}.schema.json").write_text(as_json(file.schema), encoding="utf-8")


def _unless_stated(key: str, schema: Schema, left_out: Collection[str] = ()) -> Schema:
    """Return a schema by which nothing is required where ``key`` says what the rest comes from."""
    partial = _partial(schema)
    for name in left_out:
        del partial["properties"][name]
    is_stated = {"required": [key], "properties": {key: {"type": "string"}}}
    return {"type": "object", "if": is_stated, "then": partial, "else": schema}


def _partial(schema: Schema) -> Schema:
    """Return a schema without required keys, but in lists: those replace each other as a whole."""
    partial = {key: value for key, value in schema.items() if key not in ("required", "oneOf")}
    for several in ("anyOf", "oneOf"):
        if several in schema:  # without its required keys, a value may meet more than one
            partial["anyOf"] = [_partial(option) for option in schema[several]]
    if "properties" in schema:
        partial["properties"] = {
            key: _partial(below) for key, below in schema["properties"].items()
        }
    return partial


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
