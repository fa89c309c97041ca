"""The JSON Schemas: in step with the classes, met by every file, no laxer than the classes."""

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

from configuration import FILES, file_schema, write
from convs2s.config.section import Section
from convs2s.config.yaml_file import read_yaml
from convs2s.errors import UserError
from json_schema import Schema, alternatives, schema_of

ROOT = Path(__file__).resolve().parents[3]
NAMES = [file.schema for file in FILES]
CONFIGURATION = [ROOT / "config.yaml", *sorted((ROOT / "config").rglob("*.yaml"))]
PAIR = {"source": "a", "target": "b"}
TASK = {
    "description": "",
    "languages": {"source": "en", "target": "fr"},
    "corpus": {"train": [PAIR], "valid": [PAIR], "tests": {"mine": [PAIR]}},
}
BLOCKS = [{"layers": 1, "width": 8, "kernel": 3}]
NETWORK = {"encoder": BLOCKS, "decoder": BLOCKS}


def is_valid(name: str, value: object) -> bool:
    return Draft202012Validator(file_schema(name)).is_valid(value)


def test_what_is_made_from_the_classes_is_in_step_with_them(tmp_path: Path) -> None:
    """After a change of a class: python tools/configuration.py.

    Settings of your own belong into config.local.yaml.
    """
    write(tmp_path)
    schemas = {f"schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    assert schemas == {f"schemas/{name}.schema.json" for name in NAMES}
    for file in (*schemas, "docs/configuration.md", "config.yaml"):
        assert (ROOT / file).read_text("utf-8") == (tmp_path / file).read_text(
            "utf-8"
        ), file


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(file_schema(name))


@pytest.mark.parametrize("path", CONFIGURATION, ids=lambda path: path.stem)
def test_every_file_names_its_schema_and_meets_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first, _, _ = text.partition("\n")
    mark, _, schema = first.partition("=")
    assert mark == "# yaml-language-server: $schema"
    folder = {"tasks": "task", "scales": "scale"}.get(path.parent.name, path.stem)
    target = ROOT / "schemas" / f"{folder}.schema.json"
    assert schema == os.path.relpath(target, path.parent)
    # PyYAML alone reads 1e-4 as text, editors as a number.
    content = yaml.safe_load(re.sub(r"\de-\d", lambda one: f"{float(one[0]):f}", text))
    errors = Draft202012Validator(file_schema(folder)).iter_errors(content)
    assert not [error.message for error in errors]


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_described_and_no_other_is_taken(name: str) -> None:
    (file,) = (one for one in FILES if one.schema == name)
    for place, mapping in mappings(schema_of(file.section), name):
        assert mapping.get("additionalProperties") is not None, place
        for key, schema in mapping.get("properties", {}).items():
            assert schema.get("description"), f"{place}.{key}"
            is_required = key in mapping.get("required", ())
            assert is_required != ("default" in schema), f"{place}.{key}"


def mappings(schema: Schema, place: str) -> Iterator[tuple[str, Schema]]:
    """Yield every mapping below a schema but those of overrides, which are checked when merged."""
    for one in alternatives(schema):
        if one.get("type") == "object":
            yield place, one
        below = dict(one.get("properties", {}))
        below |= {
            key: one[key] for key in ("items", "additionalProperties") if key in one
        }
        for key, inner in below.items():
            if isinstance(inner, dict):
                yield from mappings(inner, f"{place}.{key}")


JUNK: list[object] = [
    None,
    True,
    3,
    -1,
    2.5,
    "x",
    "",
    [],
    {},
    [1, 1],
    [{}],
    {"kind": "lstm"},
]


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_refuses_what_the_class_refuses(root: Path, name: str) -> None:
    (file,) = (one for one in FILES if one.schema == name)
    path = root / file.path.replace("tasks/NAME", "tasks/wmt14_en_de").replace(
        "NAME", "demo"
    )
    content: Any = read_yaml(path, name)
    entries = content.values() if file.holds == "names" else content
    first = content if file.holds == "one" else next(iter(entries))
    schema = Draft202012Validator(schema_of(file.section))
    for place in places(first):
        for junk in JUNK:
            changed = put(deepcopy(first), place, junk)
            assert is_taken(file.section, changed) == schema.is_valid(changed), (
                place,
                junk,
            )


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


def put(whole: Any, place: tuple[Any, ...], value: object) -> Any:
    target = whole
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return whole


def is_taken(section: type[Section], value: object) -> bool:
    try:
        section.model_validate(value)
    except UserError:
        return False
    except ValidationError as error:
        # A schema cannot say which keys do not fit each other.
        return all(failure["type"] == "keys" for failure in error.errors())
    return True


def test_a_task_states_its_text_or_takes_it_from_another() -> None:
    assert is_valid("task", TASK)
    assert is_valid("task", {"description": "", "text": "other"})
    assert not is_valid("task", {"description": ""})
    assert not is_valid("task", {**TASK, "text": "other"})
    assert not is_valid("task", {**TASK, "name": "mine"})


def test_names_of_test_sets_have_a_form() -> None:
    tests = {"train": [PAIR]}
    assert not is_valid("task", {**TASK, "corpus": {**TASK["corpus"], "tests": tests}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("entry", "valid"),
    [
        ({"description": "", "architecture": NETWORK}, True),
        ({"description": "", "architecture": {"kind": "lstm"}}, True),
        (
            {"description": "", "architecture": {"kind": "lstm", "encoder": BLOCKS}},
            False,
        ),
        ({"description": "", "architecture": {"cells": 8}}, False),
        ({"description": ""}, False),
        ({"extends": "small", "architecture": {"dropout": 0.5}}, True),
        ({"extends": "small", "architecture": {"cells": 8}}, True),
        ({"extends": "small", "architecture": {"encoder": [{"layers": 1}]}}, False),
        ({"extends": "small", "training": {"clp": 1}}, False),
        ({"extends": "small", "architecture": {"attention": [1, 1]}}, False),
    ],
)
def test_a_model_states_all_or_extends_another(entry: object, valid: bool) -> None:
    assert is_valid("models", {"mine": entry}) == valid


def test_overrides_state_any_keys_of_an_entry() -> None:
    training = {"small": {"training": {"clip": 1}}}
    assert is_valid(
        "config", {"overrides": {"models": training, "tasks": {"mine": {}}}}
    )
    assert not is_valid("config", {"overrides": {"models": {"small": {"trainin": {}}}}})
    assert not is_valid("config", {"overrides": {"decodings": {"greedy": {"beam": 0}}}})
