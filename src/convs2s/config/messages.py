"""One line for each failure of the configuration: the file, the key and what was expected."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from convs2s.config.file_reference import without_credentials
from convs2s.config.section import (
    Path,
    Rule,
    Section,
    alternatives,
    child,
    choices,
    keys,
    meant,
    rules,
)
from convs2s.errors import UserError

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


# Of mappings whose names have no form: YAML has numbers and null as names as well.
_ANY_NAME = {"patternErrorMessage": "expected names that are text"}

S = TypeVar("S", bound=Section)

# Where likeness of letters would find another name: cpu for gpu.
_OFTEN_MEANT = {"gpu": "cuda"}

_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}

# pydantic's name of a failure -> what was expected, with its name of the limit.
_BOUNDS = {
    "greater_than_equal": "at least {ge:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "greater_than": "more than {gt:.10g}",
    "less_than": "less than {lt:.10g}",
    "too_long": "a list of at most {max_length}",
    "string_too_short": "a text of {min_length} or more characters",
    "finite_number": "a finite number",
}


def validated(section: type[S], stated: object, where: str) -> S:
    """Return what a file states as an instance of its class.

    Args:
        section: the class.
        stated: the content of the file, or of an entry of it.
        where: what a message begins with: the file, and the entry where there is one.

    Raises:
        UserError: one line that names the place and says what was expected.
    """
    try:
        return section.model_validate(stated)
    except ValidationError as error:
        message = _message(first_fault(error, stated), rules(section), stated)
        raise UserError(f"{where}: {message}") from None


def unknown(what: str, name: object, known: Iterable[object]) -> str:
    """Return "unknown task 'dmeo'; did you mean 'demo'?", or the known names if none is near.

    Args:
        what: what the name is the name of.
        name: the name at fault.
        known: the names that are valid in its place.
    """
    names = [str(one) for one in known]
    near = _nearest(str(name), names)
    hint = f"did you mean '{near}'?" if near else f"expected {_listed(names)}"
    return f"unknown {what} '{name}'; {hint}"


def shown(value: object) -> str:
    """Write a value as a message shows it: short, and as YAML would have it."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)} entries"
    text = without_credentials(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _nearest(name: str, names: list[str]) -> str | None:
    if _OFTEN_MEANT.get(name) in names:
        return _OFTEN_MEANT[name]
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.6)), None)


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    shortened = sorted(names)[:12] + (["..."] if len(names) > 12 else [])
    return ("one of " if len(names) > 1 else "") + ", ".join(shortened)


def _message(fault: Fault, root: Rule, stated: object) -> str:
    """Word a fault of what a file states by the rules of its class."""
    if fault.kind != "missing" and not fault.is_stray_key:
        return _at(fault.path, _expectation(fault, _rules_at(root, fault.path, stated)[0]))
    *place, key = fault.path
    mapping = _rules_at(root, place, stated)[1]
    if fault.kind == "missing":
        return _at(place, _missing_key(key, mapping))
    return _at(place, _stray_key(fault.path, mapping, list(keys(root))))


def _rules_at(rule: Rule, path: Path, stated: object) -> tuple[Rule, Rule]:
    """Return the rule of a value, found by the way to it, and the branch of it that is meant."""
    for part in path:
        rule = child(rule, part, stated) or {}
        stated = stated.get(part) if isinstance(stated, dict) else stated[part]  # type: ignore[index]
    return rule, next(iter(meant(rule, stated)), rule)


def _at(path: Path, text: str) -> str:
    return f"{_dotted(path)}: {text}" if path else text


def _dotted(path: Path) -> str:
    """Write a path as corpus.train[0].source."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")


def _missing_key(key: str | int, mapping: Rule) -> str:
    meaning = mapping["properties"][key]["description"].rstrip(".")
    return f"key '{key}' is missing ({meaning})"


def _stray_key(path: Path, mapping: Rule, known: list[str]) -> str:
    """Name the nearest key of the mapping, or the place where the key is known."""
    *place, stray = path
    own = list(mapping["properties"])
    # Another kind's key is known in this very place.
    elsewhere = [key for key in known if key.rpartition(".")[2] == stray and key != _dotted(path)]
    if _nearest(str(stray), own) or not elsewhere:
        return unknown("key", stray, own)
    if elsewhere[0] == stray:
        return f"unknown key '{stray}'; it belongs beside '{place[0]}', not in it"
    return f"unknown key '{stray}'; did you mean '{elsewhere[0]}'?"


def _expectation(fault: Fault, rule: Rule) -> str:
    rule = rule.get("propertyNames", _ANY_NAME) if fault.kind == "key_name" else rule
    if not fault.is_of_form:
        expected = _bound(fault)
    elif own := _own_message(rule):
        expected = own
    elif (listed := choices(rule)) and isinstance(fault.stated, str):
        return unknown("value", fault.stated, listed)
    else:
        expected = f"expected {_kinds(rule)}"
    return f"{expected}, not {shown(fault.stated)}"


def _own_message(rule: Rule) -> str | None:
    """Return what a field itself says of a value that has not its form."""
    messages = (one.get("patternErrorMessage") for one in (rule, *alternatives(rule)))
    return next(filter(None, messages), None)


def _kinds(rule: Rule) -> str:
    """Return "a whole number or null": the types that a value may have."""
    listed = choices(rule)
    types = [one["type"] for one in alternatives(rule) if not choices(one)]
    first = [f"one of {', '.join(listed)}"] if listed else []
    return " or ".join(first + [_TYPES[one] for one in dict.fromkeys(types)])


def _bound(fault: Fault) -> str:
    if fault.kind == "too_short":
        words = "{min_length} or more entries"
        words = words if isinstance(fault.stated, dict) else "a list of {min_length} or more"
        return f"expected {words.format_map(fault.limits)}"
    if fault.kind in _BOUNDS:
        return f"expected {_BOUNDS[fault.kind].format_map(fault.limits)}"
    return fault.text
