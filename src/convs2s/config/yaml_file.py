"""YAML, read safely: no key twice, 1e-4 a number, and one line for what is not YAML."""

import re
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

import yaml

from convs2s.config.section import Rule, Values, alternatives, child
from convs2s.errors import UserError
from convs2s.files.limits import DEEPEST_NESTING, MOST_YAML_VALUES

_TEXT, _MAPPING, _LIST, _MERGE = (
    f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq", "merge")
)


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
        return None if node is None else _Builder(loader).checked(node)
    finally:
        loader.dispose()


class _Builder:
    """Makes values of a parsed file; unlike PyYAML's own constructor it looks for repeated keys."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader
        self._built: dict[yaml.Node, object] = {}  # an alias is what its anchor is
        self._sizes: dict[yaml.Node, int] = {}

    def checked(self, node: yaml.Node) -> object:
        """Return the value of a file's outermost node, if it is not absurdly large.

        Raises:
            yaml.MarkedYAMLError: as ``value`` does, or its aliases make it grow, or nest, too far.
        """
        self._size(node, DEEPEST_NESTING)
        return self.value(node)

    def _size(self, node: yaml.Node, depth: int) -> int:
        """Return how many values a node has where each alias is written out."""
        if not isinstance(node, yaml.CollectionNode):
            return 1
        if not depth:
            raise _error(f"more than {DEEPEST_NESTING} lists and mappings in each other", node)
        if node not in self._sizes:
            pairs = isinstance(node, yaml.MappingNode)
            below = [one for pair in node.value for one in pair] if pairs else node.value
            self._sizes[node] = 1 + sum(self._size(one, depth - 1) for one in below)
            if self._sizes[node] > MOST_YAML_VALUES:
                raise _error(f"more than {MOST_YAML_VALUES} values, aliases written out", node)
        return self._sizes[node]

    def value(self, node: yaml.Node) -> object:
        """Return the value of a node.

        Raises:
            yaml.MarkedYAMLError: a mapping states a key twice, or a value is not what it says.
        """
        if node.tag == _TEXT:
            return node.value
        if node.tag not in (_MAPPING, _LIST):
            return self._other(node)
        if node not in self._built:
            return self._mapping(node) if node.tag == _MAPPING else self._list(node)
        return self._built[node]

    def _other(self, node: yaml.Node) -> object:
        try:
            value: object = self._loader.construct_object(node, deep=True)
        except ValueError as error:  # such as the date 2020-13-01
            raise _error(f"not a valid value: {error}", node) from None
        return value

    def _list(self, node: yaml.Node) -> list[object]:
        items: list[object] = []
        self._built[node] = items  # before its items: one of them may be the list itself
        items += map(self.value, node.value)
        return items

    def _mapping(self, node: yaml.Node) -> dict[object, object]:
        mapping: dict[object, object] = {}
        self._built[node] = mapping
        own: dict[object, object] = {}
        for name, below in node.value:
            if name.tag == _MERGE:
                mapping |= self._merged(below)
                continue
            key = self.value(name)
            if not isinstance(key, Hashable):
                raise _error("found unhashable key", name)
            if key in own:
                raise _error(f"duplicate key '{name.value}'", name)
            own[key] = self.value(below)
        mapping |= own
        return mapping

    def _merged(self, node: yaml.Node) -> dict[object, object]:
        """Return what ``<<`` brings in: a mapping, or several of which the first wins."""
        value = self.value(node)
        merged: dict[object, object] = {}
        for one in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(one, dict):
                raise _error("expected a mapping or a list of them to merge", node)
            merged |= one
        return merged


def _error(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
