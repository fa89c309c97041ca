"""Which failure of a validation is told: the one that others follow from."""

from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from convs2s.config.rules import Path

_FORMS = ("none_required", "literal_error", "string_pattern_mismatch", "key_name")


class Fault(NamedTuple):
    """One failure of a validation.

    Attributes:
        kind: pydantic's name of it; ``key_name`` where a mapping's key has not the right form.
        path: the way to the value, without the names that pydantic gives to a union's branches.
        stated: the value.
        limits: the bounds that it was held against, by pydantic's names.
        text: pydantic's own message.
    """

    kind: str
    path: Path
    stated: object
    limits: dict[str, object]
    text: str

    @property
    def is_stray_key(self) -> bool:
        """Whether a mapping has a key that it may not have."""
        return self.kind in ("extra_forbidden", "invalid_key")

    @property
    def is_unknown_kind(self) -> bool:
        """Whether a section is of no kind that there is."""
        return self.kind == "literal_error" and self.path[-1:] == ("kind",)

    @property
    def is_of_form(self) -> bool:
        """Whether the value is of another type, or a text of another form."""
        return self.kind.endswith("_type") or self.kind in _FORMS


def first_fault(error: ValidationError, stated: object) -> Fault:
    """Return the fault that others follow from: a wrong kind, then a misspelt key.

    Where a union is meant, each of its branches has failed. The one that was understood furthest
    counts: its fault lies deeper, or is about more than the type.

    Args:
        error: of the validation.
        stated: what was validated.
    """
    faults = _faults(error, stated)
    paths = [fault.path for fault in faults]
    deepest = [one for one in faults if not any(_is_below(path, one.path) for path in paths)]
    return min(
        deepest, key=lambda one: (not one.is_unknown_kind, not one.is_stray_key, one.is_of_form)
    )


def _is_below(path: Path, above: Path) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _faults(error: ValidationError, stated: object) -> list[Fault]:
    return [_fault(one, stated) for one in error.errors(include_url=False)]


def _fault(details: ErrorDetails, whole: object) -> Fault:
    kind, location, stated = details["type"], details["loc"], details["input"]
    path = _path(location, whole)
    if kind == "missing":
        path = (*path, location[-1])
    elif kind == "invalid_key":  # which may be null or a date, and is text in the location
        path = (*_path(location[:-1], whole), location[-1])
    elif kind == "union_tag_invalid":
        kind, path, stated = "literal_error", (*path, "kind"), stated["kind"]
    elif location[-1:] == ("[key]",):
        kind, path = "key_name", path[:-1]
    return Fault(kind, path, stated, details.get("ctx", {}), details["msg"])


def _path(location: Path, value: object) -> Path:
    """Follow pydantic's location through a value; what is not found there names a branch."""
    path: list[str | int] = []
    for part in location:
        is_key = isinstance(value, dict) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int)):
            path.append(part)
            value = value[part]  # type: ignore[index]
    return tuple(path)
