"""Which file is meant by a path that no rule makes: the nearest that rules do make beside it."""

import re
from collections.abc import Callable, Iterable

from convs2s.config.messages import unknown
from convs2s.errors import UserError

_WILDCARD = re.compile(r"\{\w+\}")


def check_file(path: str, patterns: Iterable[str], is_made: Callable[[str], bool]) -> None:
    """Refuse a path that no rule makes, where rules make others in the same folder.

    Args:
        path: as it was typed.
        patterns: the outputs of all rules, with wildcards such as ``{task}``.
        is_made: whether a rule makes a path.

    Raises:
        UserError: it says which file is near, or what there is.
    """
    if is_made(path):
        return
    folder, _, file = path.rpartition("/")
    beside = [name for above, name in map(_divided, patterns) if _fits(above, folder)]
    if not beside:
        return
    meant = {_filled(name, file) for name in beside}
    made = [name for name in meant if is_made(f"{folder}/{name}")]
    known = unknown("file", file, made)
    if "did you mean" not in known:
        known = unknown("file", file, {*beside})
    raise UserError(f"{path}: {known}")


def _divided(pattern: str) -> tuple[str, str]:
    folder, _, file = pattern.rpartition("/")
    return folder, file


def _fits(pattern: str, folder: str) -> bool:
    """Return whether a folder's path can be one of a pattern."""
    return re.fullmatch("[^/]+".join(map(re.escape, _WILDCARD.split(pattern))), folder) is not None


def _filled(pattern: str, file: str) -> str:
    """Return a pattern with what a file name has in the place of its wildcards, between dots."""
    given = file.split(".")
    parts = [
        given[place] if _WILDCARD.search(part) and place < len(given) else part
        for place, part in enumerate(pattern.split("."))
    ]
    return ".".join(parts)
