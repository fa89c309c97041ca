"""YAML, read safely: no key twice, 1e-4 a number, and one line for what is not YAML."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from convs2s.config.rules import Rule, alternatives, child
from convs2s.errors import UserError

Values = dict[str, Any]
"""A mapping of YAML that no class has validated yet."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with 1e-4 read as the number that it looks like."""


# YAML 1.1 wants a point and a sign in 1.0e-4; nobody who writes 1e-4 means text.
_SCIENTIFIC = re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+0123456789"))


def read_yaml(path: Path, name: str) -> object:
    """Return the content of a YAML file; None where it is empty.

    Args:
        path: the file.
        name: what messages call it.

    Raises:
        UserError: the file is missing, is not YAML, or states a key twice; the line is named.
    """
    try:
        return _parse(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{name}: no such file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{name}{line}: {error.problem or 'not valid YAML'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None


def as_read(given: Mapping[str, object], rule: Callable[[], Rule]) -> Values:
    """Return the values of Snakemake's command line as `read_yaml` returns them.

    Inside of ``--config 'plots={sentences: [1, 2]}'`` Snakemake leaves numbers, truth values and
    null as text. They are read where the configuration does not want a text.

    Args:
        given: Snakemake's ``config``.
        rule: makes the JSON Schema of config.yaml, for which there is mostly no need.
    """
    stated = dict(given)
    return _read(stated, rule()) if _has_unread(stated) else stated  # type: ignore[return-value]


def _has_unread(value: object) -> bool:
    """Tell whether there is a text that YAML would read as something else."""
    if isinstance(value, dict | list):
        return any(map(_has_unread, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and not isinstance(_scalar(value), str)


def _read(value: object, rule: Rule | None) -> object:
    """Read the texts in a value where its JSON Schema wants none; a misspelt key has no schema."""
    if rule is None:
        return value
    if isinstance(value, dict):
        return {key: _read(item, child(rule, key, value)) for key, item in value.items()}
    if isinstance(value, list):
        return [_read(item, child(rule, place, value)) for place, item in enumerate(value)]
    return _scalar(value) if isinstance(value, str) and not _takes_text(rule) else value


def _takes_text(rule: Rule) -> bool:
    """Tell whether a rule is met by texts, or by certain ones."""
    return any(one.get("type", "string") == "string" or "enum" in one for one in alternatives(rule))


def _scalar(text: str) -> object:
    """Return what a text is in YAML; the text itself where that is no single value."""
    try:
        value = _parse(text.encode())
    except yaml.YAMLError:
        return text
    return text if isinstance(value, dict | list) else value


def _parse(content: bytes) -> object:
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_duplicates(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_duplicates(document: yaml.Node) -> None:
    """Raise ConstructorError where a mapping states a key twice.

    This looks at the file as it is written: what ``<<`` merges in may well repeat a key.
    """
    pending, seen = [document], {id(document)}
    while pending:
        node = pending.pop()
        keys: set[str] = set()
        for key in _keys(node):
            if key.value in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key.value}'", key.start_mark
                )
            keys.add(key.value)
        below = [one for one in _below(node) if id(one) not in seen]
        seen.update(map(id, below))
        pending += below


def _keys(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.MappingNode):
        yield from (key for key, _ in node.value if isinstance(key, yaml.ScalarNode))


def _below(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield what a mapping or list holds that may hold keys in turn."""
    values = node.value if isinstance(node, yaml.SequenceNode) else ()
    if isinstance(node, yaml.MappingNode):
        values = [one for pair in node.value for one in pair]
    yield from (one for one in values if isinstance(one, yaml.CollectionNode))
