"""Texts that a program hands over: what a file's reader checks of lines is checked of them too."""

from collections.abc import Sequence

from convs2s.errors import UserError
from convs2s.files.limits import LONGEST_LINE_BYTES

_FORBIDDEN = {"\0": "the character NUL", "\n": "a line feed"}


def check_texts(texts: object, name: str, longest: int = LONGEST_LINE_BYTES) -> list[str]:
    """Return the texts if they are what a model can be given, one sentence each.

    Args:
        texts: a list of them.
        name: how errors call it.
        longest: bytes of a text at most, as UTF-8.

    Raises:
        UserError: it is no list of texts, or a text is too long, no Unicode, or holds a NUL or a
            line feed; the message names the text, counted from 1.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise UserError(
            f"{name}: expected a list of texts, one sentence each, found {_kind(texts)}: put a "
            "single text into a list"
        )
    return [
        check_text(text, f"{name}:{number}", longest) for number, text in enumerate(texts, start=1)
    ]


def check_text(text: object, place: str, longest: int = LONGEST_LINE_BYTES) -> str:
    """Return a text if it is what a model can be given.

    Args:
        text: one sentence.
        place: what errors begin with.
        longest: bytes at most, as UTF-8.

    Raises:
        UserError: it is not.
    """
    if not isinstance(text, str):
        raise UserError(f"{place}: expected a text, found {_kind(text)}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UserError(
            f"{place}: not Unicode: half a surrogate pair at character {error.start + 1}; decode "
            "the bytes that it comes from as what they are"
        ) from None
    if size > longest:
        raise UserError(
            f"{place}: a text of {size:,} bytes, and {longest:,} is the most: give one sentence "
            "at a time"
        )
    for character, called in _FORBIDDEN.items():
        if character in text:
            raise UserError(
                f"{place}: holds {called} at character {text.index(character) + 1}: expected one "
                "sentence of plain text"
            )
    return text


def _kind(value: object) -> str:
    return "one text" if isinstance(value, str) else f"what Python calls {type(value).__name__}"
