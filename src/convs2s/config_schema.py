"""The schemas of the configuration: defaults, validation, and one line for each fault.

Defaults and descriptions live only in ``schemas/*.schema.yaml`` (JSON Schema 2020-12 in YAML);
jsonschema does the validation; this module fills in defaults and words the faults.
"""

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from convs2s.errors import UserError

# A link to the repository's folder schemas/; a wheel holds a copy of it under the same name.
FOLDER = Path(__file__).parent / "schemas"

_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML without duplicate keys, with 1e-4 read as the number that it looks like."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; raise ConstructorError where a key occurs twice."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key.value}'", key.start_mark
                )
            seen.add(str(key.value))
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


# YAML 1.1 wants a point and a sign in 1.0e-4; nobody who writes 1e-4 means text.
_SCIENTIFIC = re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+0123456789"))


def read_yaml(path: Path, name: str) -> Any:
    """Return the content of a YAML file; None where it is empty.

    Raises:
        UserError: the file is missing, is not YAML, or states a key twice; the line is named.
    """
    try:
        return yaml.load(path.read_bytes(), Loader=_Loader)
    except FileNotFoundError:
        raise UserError(f"{name}: no such file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{name}{line}: {error.problem or 'not valid YAML'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None


def as_read(value: Any) -> Any:
    """Return values from another YAML reader, such as Snakemake's, as `read_yaml` returns them."""
    if isinstance(value, dict):
        return {key: as_read(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_read(item) for item in value]
    return float(value) if isinstance(value, str) and _SCIENTIFIC.match(value) else value


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """Return one of the schemas: config, scale, download, task, model, decoding, paper or cost."""
    loaded: dict[str, Any] = read_yaml(FOLDER / f"{name}.schema.yaml", f"{name}.schema.yaml")
    resolved: dict[str, Any] = _inline(loaded, loaded.get("$defs", {}))
    return resolved


def _inline(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Replace each ``$ref`` into ``$defs`` by what it names; keys beside it win."""
    if isinstance(part, list):
        return [_inline(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    part = {key: value for key, value in part.items() if key != "$defs"}
    if "$ref" in part:
        part = definitions[part.pop("$ref").removeprefix("#/$defs/")] | part
    return {key: _inline(value, definitions) for key, value in part.items()}


def cases(rules: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema whose keys depend on its kind, or the schema itself."""
    return [rules["else"], rules["then"]] if "if" in rules else [rules]


def with_defaults(value: Any, rules: Mapping[str, Any]) -> Any:
    """Return a copy of ``value`` in which every key with a default is present, at every depth."""
    if "if" in rules:
        rules = rules["then" if Draft202012Validator(rules["if"]).is_valid(value) else "else"]
    if isinstance(value, dict):
        known: Mapping[str, Any] = rules.get("properties", {})
        other = rules.get("additionalProperties") or {}
        filled = {
            key: with_defaults(value.get(key, rule.get("default")), rule)
            for key, rule in known.items()
            if key in value or "default" in rule
        }
        return filled | {
            key: with_defaults(item, other) for key, item in value.items() if key not in known
        }
    if isinstance(value, list):
        return [with_defaults(item, rules.get("items", {})) for item in value]
    return value


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def check(value: Any, name: str, where: str) -> Any:
    """Validate ``value`` against the schema ``name`` and return it with its defaults.

    Args:
        value: the content of a file, or of one entry of it.
        name: see `schema`.
        where: what the message begins with: the file, and the entry where there is one.

    Raises:
        UserError: one line that names the place and says what was expected.
    """
    faults = _validator(name).iter_errors(value)
    # What other faults often follow from comes first: a wrong kind, then a misspelt key.
    ordered = sorted(
        faults,
        key=lambda fault: (
            fault.validator != "enum" or fault.absolute_path[-1] != "kind",
            fault.validator != "additionalProperties",
        ),
    )
    if ordered:
        raise UserError(f"{where}: {_message(ordered[0], schema(name))}")
    return with_defaults(value, schema(name))


def _message(fault: ValidationError, rules: Mapping[str, Any]) -> str:
    place = _path(fault.absolute_path)
    prefix = f"{place}: " if place else ""
    rule: Any = fault.schema
    stated: Any = fault.instance
    if fault.validator == "additionalProperties":
        known = rule.get("properties", {})
        stray = next(key for key in stated if key not in known)
        # Another kind's key is known in this very place.
        elsewhere = (path for path in _places(rules, "") if path != f"{place}.{stray}")
        return prefix + unknown("key", stray, known, elsewhere)
    if fault.validator == "required":
        missing = next(key for key in rule["required"] if key not in stated)
        meaning = rule["properties"][missing].get("description", "").rstrip(".")
        return f"{prefix}key '{missing}' is missing{f' ({meaning})' if meaning else ''}"
    if fault.validator == "enum" and isinstance(fault.instance, str):
        return prefix + unknown("value", fault.instance, rule["enum"])
    return f"{prefix}expected {_expected(fault)}, not {shown(fault.instance)}"


def _expected(fault: ValidationError) -> str:
    rule: Any = fault.schema
    limit: Any = fault.validator_value
    if "expected" in rule and fault.validator in ("pattern", "type"):
        return str(rule["expected"])
    if fault.validator == "type":
        return " or ".join(_TYPES[name] for name in ([limit] if isinstance(limit, str) else limit))
    if fault.validator == "enum":
        return "one of " + ", ".join(shown(choice) for choice in limit)
    words = {
        "minimum": "at least {}",
        "maximum": "at most {}",
        "exclusiveMinimum": "more than {}",
        "exclusiveMaximum": "less than {}",
        "minItems": "a list of {} or more",
        "minLength": "a text of {} or more characters",
        "minProperties": "{} or more entries",
        "uniqueItems": "a list without repetitions",
    }
    return words[str(fault.validator)].format(limit)


def _path(parts: Iterable[str | int]) -> str:
    """Write a path as corpus.train[0].source."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts).removeprefix(".")


def _places(rules: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Yield the dotted path of every key that a schema knows."""
    for case in cases(rules):
        for key, rule in case.get("properties", {}).items():
            yield prefix + key
            yield from _places(rule, f"{prefix}{key}.")


def shown(value: Any) -> str:
    """Write a value as a message shows it: short, and as YAML would have it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def unknown(what: str, name: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """Return "unknown key 'scael'; did you mean 'scale'?", or the known names if none is near.

    Args:
        what: what the name is the name of.
        name: the name at fault.
        known: the names that are valid in its place.
        elsewhere: dotted paths of keys that are valid in other places.
    """
    names = [str(one) for one in known]
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    near = near or [path for path in elsewhere if path.rpartition(".")[2] == name][:1]
    if near:
        return f"unknown {what} '{name}'; did you mean '{near[0]}'?"
    return f"unknown {what} '{name}'; expected {_listed(names)}"


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    shortened = sorted(names)[:12] + (["..."] if len(names) > 12 else [])
    return ("one of " if len(names) > 1 else "") + ", ".join(shortened)
