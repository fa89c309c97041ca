"""The schemas as text: docs/configuration.md and the commented config.yaml."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from convs2s.config_schema import cases, schema

_SECTIONS = ("config", "task", "model", "decoding", "scale", "download", "paper", "cost")

_INTRODUCTION = """\
# Configuration

This page is made from the schemas in `schemas/` (`convs2s config --reference`); change those.

Settings of one machine (mirrors, cores) go into `config.local.yaml`, which has the keys of
`config.yaml`, wins over it and is not under version control. `snakemake --config scale=demo` wins
over both. `convs2s config --task NAME` prints all that applies to one task, defaults included.

A key that no schema knows, a key stated twice and a name that refers to nothing are errors.
"""

_WIDTH = 100


def reference() -> str:
    """Return docs/configuration.md: every key of every file, its type, default and meaning."""
    return "\n".join([_INTRODUCTION, *(_section(name) for name in _SECTIONS)])


def template() -> str:
    """Return config.yaml with every default, each key under its description as a comment."""
    head = _comment(schema("config")["description"], 0)
    return "\n".join([head, *_commented(schema("config"), 0)]) + "\n"


def _section(name: str) -> str:
    rules = schema(name)
    rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(rules, ""))
    return (
        f"## {rules['title']}\n\n{rules['description']}\n\n"
        f"| key | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}\n"
    )


def _rows(
    rules: Mapping[str, Any], prefix: str, note: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Yield a table row for each key below ``rules``, depth first; ``note`` begins each meaning."""
    for key, rule in rules.get("properties", {}).items():
        path = prefix + key
        required = key in rules.get("required", [])
        yield f"`{path}`", _type(rule), _default(rule, required), note + _text(rule)
        yield from _rows(rule, f"{path}.", note)
        if "if" in rule:
            for case in cases(rule):
                own = [one for one in case["properties"] if one not in rule["properties"]]
                kept = {"properties": {one: case["properties"][one] for one in own}}
                yield from _rows({**case, **kept}, f"{path}.", f"{case['title']}: ")
        if rule.get("additionalProperties"):
            rule, path = rule["additionalProperties"], f"{path}.NAME"
        yield from _rows(rule.get("items", {}), f"{path}[].", note)


def _type(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return ", ".join(_yaml(choice) for choice in rule["enum"])
    kinds = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
    return " or ".join({"object": "mapping", "array": "list"}.get(kind, kind) for kind in kinds)


def _default(rule: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    if "default" not in rule or (isinstance(rule["default"], dict) and "properties" in rule):
        return ""
    return f"`{_yaml(rule['default'])}`"


def _text(rule: Mapping[str, Any]) -> str:
    return str(rule.get("description", "")).replace("|", "\\|")


def _commented(rules: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a mapping that states every default."""
    indent = "  " * depth
    for key, rule in rules["properties"].items():
        choices = f" One of {_type(rule)}." if "enum" in rule else ""
        yield ("" if depth else "\n") + _comment(rule["description"] + choices, depth)
        if "properties" in rule:
            yield f"{indent}{key}:"
            yield from _commented(rule, depth + 1)
        else:
            yield f"{indent}{key}: {_yaml(rule['default'])}"


def _comment(text: str, depth: int) -> str:
    mark = "  " * depth + "# "
    return textwrap.fill(
        text, _WIDTH, initial_indent=mark, subsequent_indent=mark, break_on_hyphens=False
    )


def _yaml(value: Any) -> str:
    """Write a value on one line of YAML."""
    flow = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.removesuffix("\n").removesuffix("\n...")
