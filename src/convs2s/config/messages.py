"""One line for each failure of the configuration: the file, the key and what was expected."""

import json
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from convs2s.config.file_reference import masked
from convs2s.config.section import S
from convs2s.errors import UserError

Place = tuple[str | int, ...]  # the way to a value: keys of mappings and indices of lists

_MOST_NAMES = 12  # known names that a message lists
_MOST_SHOWN = 60  # characters of a value that a message shows

# Where pydantic speaks of Python's types, or at length; {} is its name of a limit.
_WORDS = {
    "dict_type": "expected a mapping of keys to values",
    "model_type": "expected a mapping of keys to values",
    "model_attributes_type": "expected a mapping of keys to values",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "too_short": "expected {min_length} or more entries",
    "string_too_short": "expected {min_length} or more characters",
    "greater_than_equal": "expected at least {ge:.10g}",
    "less_than_equal": "expected at most {le:.10g}",
    "greater_than": "expected more than {gt:.10g}",
    "invalid_key": "expected words as keys; in a number, write no comma",
    "less_than": "expected less than {lt:.10g}",
}


def validated(section: type[S], stated: object, where: str, *, lax: bool = False) -> S:
    """Return what is stated as its class; ``lax``: a text may stand for what is none.

    Raises:
        UserError: It is not valid; begins with ``where`` and names the key.
    """
    try:
        return section.model_validate(stated, strict=False if lax else None, context=lax)
    except ValidationError as error:
        message = _message(error.errors(include_url=False), stated)
        raise UserError(f"{where}: {masked(message)}") from None
    except UserError as error:  # of an extension's own section
        raise UserError(f"{where}: {error}") from None


def unknown(noun: str, name: object, known: Iterable[object]) -> str:
    """Return "unknown task 'dmeo'; did you mean 'demo'?", or the known names if none is near."""
    names = sorted(map(str, known))
    near = get_close_matches(str(name), names, n=1)
    if near:
        return f"unknown {noun} '{name}'; did you mean '{near[0]}'?"
    shown = ", ".join(names[:_MOST_NAMES]) or "none"
    if len(names) > _MOST_NAMES:
        shown += ", ..."
    one_of = "one of " if len(names) > 1 else ""
    return f"unknown {noun} '{name}'; expected {one_of}{shown}"


def check_known(where: str, noun: str, name: str | None, known: Collection[str]) -> None:
    """Check that a name, if one is stated, is known; a UserError names the nearest one that is."""
    if name is not None and name not in known:
        raise UserError(f"{where}: {unknown(noun, name, known)}")


def _place_of(location: Sequence[str | int], value: object) -> Place:
    """Follow pydantic's location through a value; what is not found names a union's branch."""
    place: list[str | int] = []
    for part in location:
        is_key = isinstance(value, dict) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int)):
            place.append(part)
            value = value[part]  # type: ignore[index]
    return tuple(place)


def _message(failures: list[ErrorDetails], stated: object) -> str:
    """Word the failure that others follow from: a misspelt key, else the one that lies deepest.

    Each branch of a union fails by itself; the one that was understood furthest is what was meant.
    """

    def rank(failure: ErrorDetails) -> tuple[bool, int, bool]:
        depth = len(_place_of(failure["loc"], stated))
        kind = failure["type"]
        is_of_form = kind.endswith("_type") or kind in ("form", "literal_error")
        return kind != "unknown_key", -depth, is_of_form

    failure = min(failures, key=rank)
    context = failure.get("ctx", {})
    if failure["type"] == "unknown_key":
        text = unknown("key", context["key"], context["known"])
    elif failure["type"] == "missing":
        text = f"key '{failure['loc'][-1]}' is missing"
    else:
        value = failure["input"]
        # As YAML would have it: true, false and null.
        is_constant = value is None or isinstance(value, bool)
        shown = masked(json.dumps(value) if is_constant else repr(value))
        if len(shown) > _MOST_SHOWN:
            shown = f"{shown[: _MOST_SHOWN - 3]}..."
        words, _, _ = failure["msg"].partition(", unable to")
        words = words.replace("Input should be", "expected")
        expected = _WORDS.get(failure["type"], "{words}").format(words=words, **context)
        text = f"{expected}, not {shown}"
    dotted = ""
    for part in _place_of(failure["loc"], stated):
        dotted += f"[{part}]" if isinstance(part, int) else f".{part}"
    place = dotted.removeprefix(".")
    return f"{place}: {text}" if place else text
