"""Read YAML files. Repeated keys are refused, and 1e-4 is a number."""

import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import yaml
from yaml.constructor import ConstructorError

from convs2s.errors import UnreadableFileError, UserError
from convs2s.files.limits import DEEPEST_NESTING, MOST_YAML_VALUES

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's safe loader, which also reads 1e-4 as a number.

    PyYAML is used because Snakemake reads config.yaml with it: apart from such numbers, a file
    means the same to both. Also, every job reads config/, which takes 20 times as long with
    ruamel.yaml.
    """

    def get_single_node(self) -> yaml.Node | None:
        """Return the tree of the document; None if it is empty.

        Raises:
            ConstructorError: The tree is too large, or a mapping repeats a key.
        """
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _check_extent(node, DEEPEST_NESTING, {})
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Return the value of a node.

        Raises:
            ConstructorError: The node is not a valid value of its type, such as the date
                2020-13-01. The error states the line.
        """
        try:
            return super().construct_object(node, deep)
        # An empty !!int raises LookupError, a !!timestamp that is no date AttributeError, and a
        # number to the base of 60 with hundreds of digits (1:00:00...) OverflowError.
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            raise _fault(f"not a valid value: {error}", node) from None


# In YAML 1.1, such a number needs a point, and a sign in its exponent (1.0e-4): 1e-4 is text.
_SCIENTIFIC = re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
# PyYAML tries the pattern only on texts that begin with one of these characters.
_FIRST_CHARACTERS = list("-+0123456789")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, _FIRST_CHARACTERS)


def option_files(root: Path) -> dict[str, object]:
    """Return the contents of config.yaml and config.local.yaml: name of the file -> content.

    config.local.yaml comes second and overrides config.yaml. A deployed workflow has
    config/config.yaml in place of config.yaml. A file that is missing or has only comments is left
    out; Snakemake ignores such files too.
    """
    options = "config.yaml" if (root / "config.yaml").exists() else "config/config.yaml"
    stated = {}
    for file in (options, "config.local.yaml"):
        if (root / file).exists():
            content = read_yaml(root / file, file)
            if content is not None:
                stated[file] = content
    return stated


def read_yaml(path: Path, name: str) -> object:
    """Return the content of a YAML file; None if it is empty.

    Raises:
        UnreadableFileError: The file cannot be read.
        UserError: The file is not valid YAML or repeats a key. The message names the file as
            ``name``, and the line.
    """
    try:
        return yaml.load(path.read_bytes(), _Loader)
    except OSError as error:
        raise UnreadableFileError(f"{name}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{name}{line}: {error.problem or 'not valid YAML'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(
            f"{name}: not valid YAML: {' '.join(str(error).split())}"
        ) from None


class _Extent(NamedTuple):
    """The size of a node if each alias in it were written out."""

    values: int
    levels: int


def _check_extent(
    node: yaml.Node, depth: int, extents: dict[yaml.CollectionNode, _Extent]
) -> _Extent:
    """Return how many values a node would have, and how many levels of lists and mappings.

    Both are limited. A small file with aliases of aliases can stand for billions of values, or be
    nested more deeply than PyYAML can construct. ``depth`` is how many levels may still be nested.
    ``extents`` has the results for nodes that were visited, so that the node of an alias is not
    visited again.

    Raises:
        ConstructorError: The node has too many values or levels, or a mapping repeats a key.
    """
    if not isinstance(node, yaml.CollectionNode):
        return _Extent(values=1, levels=0)
    # A list that contains an alias of itself has no end and never gets into ``extents``. The limit
    # of the depth stops it.
    if depth == 0 or (node in extents and extents[node].levels > depth):
        raise _fault(f"more than {DEEPEST_NESTING} nested lists and mappings", node)
    if node not in extents:
        below = node.value
        if isinstance(node, yaml.MappingNode):
            _refuse_repeated_keys(node)
            below = chain.from_iterable(node.value)
        values = 1
        levels = 0
        for part in below:
            extent = _check_extent(part, depth - 1, extents)
            values += extent.values
            levels = max(levels, extent.levels)
        if values > MOST_YAML_VALUES:
            raise _fault(
                f"more than {MOST_YAML_VALUES} values if aliases are written out", node
            )
        extents[node] = _Extent(values, levels + 1)
    return extents[node]


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    keys = set()
    for key, _ in node.value:
        # The merge key << may be repeated.
        if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
            typed = key.tag, key.value
            if typed in keys:
                raise _fault(f"duplicate key '{key.value}'", key)
            keys.add(typed)


def _fault(problem: str, node: yaml.Node) -> ConstructorError:
    return ConstructorError(None, None, problem, node.start_mark)
