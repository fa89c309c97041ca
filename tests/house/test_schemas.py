"""Schemas and pages are made from the classes: in step, and met by every file."""

import os
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from configuration import FILES, ConfigurationFile, file_schema, template, write
from convs2s.config.options import Options
from convs2s.config.section import Section
from convs2s.config.yaml_file import read_yaml
from convs2s.errors import UserError
from json_schema import schema_of
from tests.conftest import ROOT, Terminal

CONFIGURATION = [
    ROOT / "config.yaml",
    ROOT / ".test/config/config.yaml",
    *sorted((ROOT / "config").rglob("*.yaml")),
]


def test_what_is_made_from_the_classes_is_in_step_with_them(tmp_path: Path) -> None:
    """After a change of a class: python tools/configuration.py.

    Settings of your own belong into config.local.yaml.
    """
    write(tmp_path)
    schemas = {f"schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    assert schemas == {f"schemas/{file.schema}.schema.json" for file in FILES}
    for file in (*schemas, "docs/configuration.md", "config.yaml"):
        made = (tmp_path / file).read_text("utf-8")
        assert (ROOT / file).read_text("utf-8") == made, file
    assert yaml.safe_load(template()) == Options().model_dump(mode="json")


def test_the_page_of_tasks_lists_all_of_them(run: Terminal) -> None:
    page = (ROOT / "docs/tasks.md").read_text("utf-8")
    listed = page.partition("<!-- tasks: begin -->\n")[2]
    listed = listed.partition("<!-- tasks: end -->")[0]
    assert listed == run("config", "--tasks")
    assert listed.count("\n") == 2 + len(list((ROOT / "config/tasks").glob("*.yaml")))


def test_every_file_names_its_schema_and_meets_it() -> None:
    for path in CONFIGURATION:
        text = path.read_text("utf-8")
        name = {"tasks": "task", "scales": "scale"}.get(path.parent.name, path.stem)
        target = os.path.relpath(ROOT / f"schemas/{name}.schema.json", path.parent)
        assert text.startswith(f"# yaml-language-server: $schema={target}\n"), path
        # PyYAML alone reads 1e-4 as text, editors as a number.
        read = re.sub(r"\de-\d", lambda one: f"{float(one[0]):f}", text)
        schema = Draft202012Validator(file_schema(name))
        errors = schema.iter_errors(yaml.safe_load(read))
        assert [error.message for error in errors] == [], path


def test_every_key_is_described() -> None:
    for file in FILES:
        Draft202012Validator.check_schema(file_schema(file.schema))
        stated = [*keys_of(schema_of(file.section))]
        assert len(stated) > 2
        unsaid = [key for key, schema in stated if not schema.get("description")]
        assert unsaid == [], file.schema


def keys_of(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield each key that a schema states, anywhere in it, and what it says of it."""
    below = schema
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        below = [*schema.values()]
    if isinstance(below, list):
        for one in below:
            yield from keys_of(one)


JUNK = yaml.safe_load(
    "[null, true, 3, -1, 2.5, x, '', [], {}, [1, 1], [{}], {kind: lstm}]"
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.schema)
def test_the_schema_refuses_what_the_class_refuses(file: ConfigurationFile) -> None:
    path = file.path.replace("tasks/NAME", "tasks/wmt14_en_de").replace("NAME", "demo")
    content: Any = read_yaml(ROOT / path, file.schema)
    entries = content.values() if file.holds == "names" else content
    first = content if file.holds == "one" else next(iter(entries))
    schema = Draft202012Validator(schema_of(file.section))
    for place in places(first):
        for junk in JUNK:
            changed = deepcopy(first)
            target: Any = changed
            for key in place[:-1]:
                target = target[key]
            target[place[-1]] = junk
            found = is_taken(file.section, changed)
            assert found == schema.is_valid(changed), (place, junk)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value below one, and to a key that nobody knows.

    Of the items of a list that state the same keys, the first stands for all.
    """
    known = value
    if isinstance(value, list):
        kinds = [set(one) if isinstance(one, dict) else type(one) for one in value]
        known = {number: value[number] for number in map(kinds.index, kinds)}
    if isinstance(value, dict):
        yield (*place, "unknown")
    if isinstance(known, dict):
        for key, below in known.items():
            yield (*place, key)
            yield from places(below, (*place, key))


def is_taken(section: type[Section], value: object) -> bool:
    try:
        section.model_validate(value)
    except UserError:
        return False
    except ValidationError as error:
        # A schema cannot say which keys do not fit each other.
        return all(failure["type"] == "keys" for failure in error.errors())
    return True


TAKEN = """
task: {description: '', text: other}
models: {a: {description: '', architecture: {kind: lstm}}}
models: {a: {extends: small, architecture: {dropout: 0.5}}}
models: {a: {extends: small, architecture: {cells: 8}}}
config: {overrides: {models: {a: {training: {clip: 1}}}, tasks: {b: {}}}}
"""
REFUSED = """
task: {description: ''}
task: {description: '', text: other, name: mine}
task: {description: '', text: other, languages: {source: en, target: fr}}
models: {a: {description: '', architecture: {kind: lstm, encoder: []}}}
models: {a: {description: '', architecture: {cells: 8}}}
models: {a: {description: ''}}
models: {a: {extends: small, architecture: {encoder: [{layers: 1}]}}}
models: {a: {extends: small, architecture: {attention: [1, 1]}}}
models: {a: {extends: small, training: {clp: 1}}}
config: {overrides: {models: {small: {trainin: {}}}}}
config: {overrides: {decodings: {greedy: {beam: 0}}}}
"""


def test_a_schema_takes_whole_entries_and_parts_of_them() -> None:
    for table, is_valid in ((TAKEN, True), (REFUSED, False)):
        for line in table.strip().splitlines():
            ((name, content),) = yaml.safe_load(line).items()
            schema = Draft202012Validator(file_schema(name))
            assert schema.is_valid(content) == is_valid, line
