"""Kinds of values that several sections have: bounded numbers, texts of a form, lists."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

T = TypeVar("T")

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]

Probability = Annotated[float, Field(ge=0, lt=1)]
"""A share of what there is, never all of it."""

Text = Annotated[str, Field(min_length=1)]
"""A text that says something."""


def matching(pattern: str, message: str) -> FieldInfo:
    """Return the bound of a text that has a certain form.

    Args:
        pattern: a regular expression.
        message: "expected ...", in words, for whoever states something else.
    """
    # This name is what editors know such a message by (yaml-language-server).
    field: FieldInfo = Field(pattern=pattern, json_schema_extra={"patternErrorMessage": message})
    return field


Items = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of YAML, as a tuple: it cannot change either."""


def _without_repetitions(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(items)) < len(items):
        raise PydanticCustomError("repetition", "expected a list without repetitions")
    return items


_UNIQUE: JsonDict = {"uniqueItems": True}

DistinctItems = Annotated[
    tuple[T, ...],
    Field(strict=False, json_schema_extra=_UNIQUE),
    AfterValidator(_without_repetitions),
]
"""A list that names nothing twice."""

SomeDistinctItems = Annotated[
    tuple[T, ...],
    Field(strict=False, min_length=1, json_schema_extra=_UNIQUE),
    AfterValidator(_without_repetitions),
]
"""A list that names something, and nothing twice."""
