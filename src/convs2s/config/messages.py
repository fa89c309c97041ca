"""One line for each failure of the configuration: the file, the key and what was expected."""

import json
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from convs2s.config.file_reference import masked
from convs2s.config.section import S, Schema, alternatives, constant_kind, schema_of
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


def validated(section: type[S], stated: object, where: str) -> S:
    """Return what is stated as its class.

    Raises:
        UserError: It is not valid; begins with ``where`` and names the key.
    """
    try:
        return section.model_validate(stated)
    except ValidationError as error:
        message = _message(error.errors(include_url=False), stated, schema_of(section))
        raise UserError(f"{where}: {masked(message)}") from None
    except UserError as error:  # of an extension's own section
        raise UserError(f"{where}: {error}") from None


def unknown(noun: str, name: object, known: Iterable[object]) -> str:
    """Return "unknown task 'dmeo'; did you mean 'demo'?", or the known names if none is near."""
    names = sorted(map(str, known))
    near = get_close_matches(str(name), names, n=1)
    if near:
        return f"unknown {noun} '{name}'; did you mean '{near[0]}'?"
    if not names:
        return f"unknown {noun} '{name}'; expected none"
    if len(names) == 1:
        return f"unknown {noun} '{name}'; expected {names[0]}"
    shown = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        shown += ", ..."
    return f"unknown {noun} '{name}'; expected one of {shown}"


def check_known(where: str, noun: str, name: str | None, known: Collection[str]) -> None:
    """Check that a name, if one is stated, is known; a UserError names the nearest one that is."""
    if name is not None and name not in known:
        raise UserError(f"{where}: {unknown(noun, name, known)}")


def place_of(location: Sequence[str | int], value: object) -> Place:
    """Follow pydantic's location through a value; what is not found names a union's branch."""
    place: list[str | int] = []
    for part in location:
        is_key = isinstance(value, dict) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int)):
            place.append(part)
            value = value[part]  # type: ignore[index]
    return tuple(place)


def _message(failures: list[ErrorDetails], stated: object, schema: Schema) -> str:
    """Word the failure that others follow from: a misspelt key, else the one that lies deepest.

    Each branch of a union fails by itself; the one that was understood furthest is what was meant.
    """

    def rank(failure: ErrorDetails) -> tuple[bool, int, bool]:
        depth = len(place_of(failure["loc"], stated))
        return failure["type"] != "extra_forbidden", -depth, _is_of_form(failure)

    failure = min(failures, key=rank)
    place = place_of(failure["loc"], stated)
    if failure["type"] == "extra_forbidden":
        place = place[:-1]
        text = unknown("key", failure["loc"][-1], _known_keys(failure, schema, place))
    elif failure["type"] == "missing":
        text = f"key '{failure['loc'][-1]}' is missing"
    else:
        value = failure["input"]
        # As YAML would have it: true, false and null.
        is_constant = value is None or isinstance(value, bool)
        shown = masked(json.dumps(value) if is_constant else repr(value))
        if len(shown) > _MOST_SHOWN:
            shown = f"{shown[: _MOST_SHOWN - 3]}..."
        text = f"{_expectation(failure, schema, place)}, not {shown}"
    if not place:
        return text
    dotted = ""
    for part in place:
        dotted += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{dotted.removeprefix('.')}: {text}"


def _known_keys(failure: ErrorDetails, schema: Schema, place: Place) -> set[str]:
    """Return the keys of the mapping at a place: of a union those of the branch that was meant."""
    mappings = _schemas_at(schema, place)
    kinds = {constant_kind(option) for option in mappings} & {*failure["loc"]}
    known: set[str] = set()
    for option in mappings:
        if not kinds or constant_kind(option) in kinds:
            known.update(option.get("properties", ()))
    return known


def _expectation(failure: ErrorDetails, schema: Schema, place: Place) -> str:
    """Say what was expected: in the words of the class, else in ours, else in pydantic's."""
    if _is_of_form(failure):
        schemas = _schemas_at(schema, place)
        if failure["loc"][-1:] == ("[key]",):  # the name of an entry
            mappings = _schemas_at(schema, place[:-1])
            schemas = [mapping.get("propertyNames", {}) for mapping in mappings]
        for option in schemas:
            if "patternErrorMessage" in option:
                return str(option["patternErrorMessage"])
    words = _WORDS.get(failure["type"])
    if words is not None:
        return words.format_map(failure.get("ctx", {}))
    return failure["msg"].replace("Input should be", "expected")


def _is_of_form(failure: ErrorDetails) -> bool:
    """Whether the value is of another type, or a text of another form."""
    forms = ("literal_error", "string_pattern_mismatch", "none_required")
    return failure["type"].endswith("_type") or failure["type"] in forms


def _schemas_at(schema: Schema, place: Place) -> list[Schema]:
    """Return what may stand at a place, with the branches of unions."""
    schemas = alternatives(schema)
    for part in place:
        below: list[Schema] = []
        for option in schemas:
            entries = "items" if isinstance(part, int) else "additionalProperties"
            union = option.get("properties", {}).get(part) or option.get(entries)
            if isinstance(union, dict):
                below += [union, *alternatives(union)]
        schemas = below
    return schemas
