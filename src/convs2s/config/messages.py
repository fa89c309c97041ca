"""Messages about the configuration: one line with the file, the key and what was expected."""

import json
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from convs2s.config.file_reference import masked
from convs2s.config.section import S
from convs2s.errors import UserError

_MOST_NAMES = 12  # maximum number of known names that a message lists
_MOST_SHOWN = 60  # maximum number of characters of a value that a message shows
# Maximum number of characters of a value that are searched for passwords. The time of the search
# grows with the square of this number.
_MOST_MASKED = 1000

# Type of a failure -> words in place of pydantic's words, if these are long or name Python's types.
# The fields in {} are in the failure's context.
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
    "invalid_key": "expected text as a key; write numbers without commas",
    "less_than": "expected less than {lt:.10g}",
}


def validated(
    section: type[S],
    stated: object,
    where: str,
    *,
    lax: bool = False,
) -> S:
    """Return the content of a file, or of a part of it, as an object of its class.

    With ``lax``, texts may stand for numbers, truth values and null, because Snakemake leaves some
    of these values as texts.

    Raises:
        UserError: The content is not valid. The message begins with ``where`` and names the key.
    """
    # None means that the section's own configuration holds, which is strict.
    strict = False if lax else None
    try:
        return section.model_validate(stated, strict=strict, context=lax)
    except ValidationError as error:
        message = _message(error.errors(include_url=False), stated)
        raise UserError(f"{where}: {masked(message)}") from None
    except UserError as error:
        # Raised when the settings of a network are read: keys do not fit each other, no extension
        # adds the stated kind, or the code of an extension failed.
        raise UserError(f"{where}: {error}") from None


def unknown(
    noun: str,
    name: object,
    known: Iterable[object],
) -> str:
    """Return the text "unknown task 'dmeo'; did you mean 'demo'?".

    If no known name is similar, the text lists the known names instead.
    """
    names = sorted(map(str, known))
    near = get_close_matches(str(name), names, n=1)
    if near:
        return f"unknown {noun} '{name}'; did you mean '{near[0]}'?"
    shown = ", ".join(names[:_MOST_NAMES]) or "none"
    if len(names) > _MOST_NAMES:
        shown += ", ..."
    one_of = "one of " if len(names) > 1 else ""
    return f"unknown {noun} '{name}'; expected {one_of}{shown}"


def check_known(
    where: str,
    noun: str,
    name: str | None,
    known: Collection[str],
) -> None:
    """Check that a name is known; None is not checked.

    Raises:
        UserError: The name is unknown. The message begins with ``where`` and suggests a similar
            name.
    """
    if name is not None and name not in known:
        raise UserError(f"{where}: {unknown(noun, name, known)}")


def _place_of(location: Sequence[str | int], value: Any) -> list[str | int]:
    """Return the keys and indices in ``value`` that pydantic's location names.

    A location also has the names of union branches. They are not keys of the value and are skipped.
    """
    place = []
    for part in location:
        is_key = isinstance(value, dict) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int)):
            place.append(part)
            value = value[part]
    return place


def _message(failures: list[ErrorDetails], stated: object) -> str:
    """Return the message for the most telling failure of several.

    A misspelt key is the most telling, because it often causes other failures. Next is the deepest
    failure: each branch of a union fails separately, and the branch that the user meant was
    probably read furthest. At the same depth, a wrong value tells more than a wrong type.
    """

    def rank(failure: ErrorDetails) -> tuple[bool, int, bool]:
        kind = failure["type"]
        is_other = kind != "unknown_key"
        depth = len(_place_of(failure["loc"], stated))
        is_wrong_type = kind.endswith("_type") or kind in ("form", "literal_error")
        return is_other, -depth, is_wrong_type

    failure = min(failures, key=rank)
    context = failure.get("ctx", {})
    if failure["type"] == "unknown_key":
        text = unknown("key", context["key"][:_MOST_MASKED], context["known"])
    elif failure["type"] == "missing":
        text = f"key '{failure['loc'][-1]}' is missing"
    elif failure["type"] == "keys":
        # The message says which keys do not fit each other.
        text = failure["msg"]
    else:
        value = failure["input"]
        is_constant = value is None or isinstance(value, bool)
        # json.dumps writes true, false and null as YAML does.
        shown = json.dumps(value) if is_constant else repr(value)
        shown = masked(shown[:_MOST_MASKED])
        if len(shown) > _MOST_SHOWN:
            shown = f"{shown[: _MOST_SHOWN - 3]}..."
        if failure["type"] in _WORDS:
            expected = _WORDS[failure["type"]].format(**context)
        else:
            # pydantic's words, without its reason why a text could not be parsed.
            expected, _, _ = failure["msg"].partition(", unable to")
            expected = expected.replace("Input should be", "expected")
        text = f"{expected}, not {shown}"
    dotted = ""
    for part in _place_of(failure["loc"], stated):
        dotted += f"[{part}]" if isinstance(part, int) else f".{part}"
    place = dotted.removeprefix(".")
    return f"{place}: {text}" if place else text
