"""YAML, read safely: no key twice, 1e-4 a number, and one line for what is not YAML."""

import re
from pathlib import Path

import yaml
from yaml.constructor import ConstructorError

from convs2s.errors import UserError
from convs2s.files.limits import DEEPEST_NESTING, MOST_YAML_VALUES

_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with 1e-4 read as the number that it looks like.

    It is PyYAML's for two reasons: Snakemake reads config.yaml with it, and a file must mean the
    same to both; and every job reads config/, which takes 20 times as long by ruamel.yaml's loader.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Return the value of a node; what is no value after all is named with its line."""
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value  # most nodes are texts, and PyYAML's own way is a long one
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError) as error:  # 2020-13-01, !!int of nothing
            raise _fault(f"not a valid value: {error}", node) from None


# YAML 1.1 wants a point and a sign in 1.0e-4; nobody who writes 1e-4 means text.
_SCIENTIFIC = re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+0123456789"))


def option_files(root: Path) -> dict[str, object]:
    """Return what each file of options states; the later wins.

    A deployed workflow has config/config.yaml in place of config.yaml. A file without a value, such
    as one of comments alone, is left out: Snakemake does not read it.
    """
    options = "config.yaml" if (root / "config.yaml").exists() else "config/config.yaml"
    stated = {}
    for file in (options, "config.local.yaml"):
        if (root / file).exists():
            stated[file] = read_yaml(root / file, file)
    return {file: content for file, content in stated.items() if content is not None}


def read_yaml(path: Path, name: str) -> object:
    """Return the content of a YAML file; None where it is empty.

    Raises:
        UserError: Names the file (``name``), and the line of what is not YAML or a repeated key.
    """
    try:
        return _parse(path.read_bytes())
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{name}{line}: {error.problem or 'not valid YAML'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None


def _parse(content: bytes) -> object:
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, DEEPEST_NESTING, {})
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check(node: yaml.Node, depth: int, sizes: dict[yaml.Node, int]) -> int:
    """Return how many values a node has where each alias is written out; refuse repeated keys.

    A small file of aliases of aliases can stand for billions of values.
    """
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if not depth:
        raise _fault(f"more than {DEEPEST_NESTING} lists and mappings in each other", node)
    if node not in sizes:
        below: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            _refuse_repeated_keys(node)
            for pair in node.value:
                below += pair
        else:
            below = node.value
        size = 1
        for part in below:
            size += _check(part, depth - 1, sizes)
        sizes[node] = size
        if sizes[node] > MOST_YAML_VALUES:
            raise _fault(f"more than {MOST_YAML_VALUES} values, aliases written out", node)
    return sizes[node]


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    keys = set()
    for key, _ in node.value:
        if key.tag != _MERGE and isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in keys:
                raise _fault(f"duplicate key '{key.value}'", key)
            keys.add((key.tag, key.value))


def _fault(problem: str, node: yaml.Node) -> ConstructorError:
    return ConstructorError(None, None, problem, node.start_mark)
