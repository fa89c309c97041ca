"""The base class of the configuration's sections, and the types of their values."""

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from convs2s.files.limits import MOST_PROCESSES

# A mapping of YAML as plain data, not as an object of its class.
Values = dict[str, Any]

S = TypeVar("S", bound="Section")
T = TypeVar("T")


class Section(BaseModel):
    """A mapping of the configuration. It has only known keys and cannot be changed.

    Values must have the type of their key: for example, text is not converted to numbers. A
    subclass is the only place that states a key's type, bounds, default and description. The
    description is the text below the field, which editors and docs/configuration.md show.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, stated: object) -> object:
        """Refuse an unknown key with an error that also has the known keys, for the message."""
        # Requests of the server may have further keys, which are ignored.
        if cls.model_config["extra"] != "forbid" or not isinstance(stated, dict):
            return stated
        # This is the usual case, which needs no list of the known keys.
        if stated.keys() <= cls.model_fields.keys():
            return stated
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in stated:
            if isinstance(key, str) and key not in known:
                context = {"key": key, "known": known}
                raise PydanticCustomError("unknown_key", "unknown key", context)
        return stated


@cache
def field_texts(section: type[Section]) -> dict[str, str]:
    """Return the descriptions of a section's fields: field -> the text below it, on one line."""
    # pydantic's use_attribute_docstrings does the same, but it reads the source of every class
    # whenever the configuration is loaded. Only tools need the descriptions.
    texts = {}
    # Base classes come first, so that a class can replace the text of an inherited field.
    for base in reversed(section.__mro__):
        if not issubclass(base, Section):
            continue
        (definition,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in pairwise(definition.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split())
    return texts


PositiveInt = Annotated[int, Field(ge=1)]
# A number of processes or threads.
Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]

Probability = Annotated[float, Field(ge=0, lt=1)]
Text = Annotated[str, Field(min_length=1)]

Items = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of YAML as a tuple, so that it cannot be changed."""

SomeItems = Annotated[Items[T], Field(min_length=1)]
"""A list of YAML with at least one item, as a tuple."""


@dataclass(frozen=True)
class Expecting:
    """Annotates a type with the message for any invalid value, in place of pydantic's messages."""

    message: str
    pattern: str | None = None  # regular expression that a valid text matches

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(Annotated[source, Field(pattern=self.pattern)])
        return core_schema.custom_error_schema(
            schema, "form", custom_error_message=self.message
        )


def _check_distinct(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(items)) < len(items):
        raise PydanticCustomError("repetition", "expected a list without repetitions")
    return items


FileName = Annotated[
    str,
    Expecting(
        "expected a name without { and }, which mark wildcards in Snakemake: rename the file or "
        "folder",
        pattern="^[^{}]+$",
    ),
]
"""The path or URL of a file or folder that rules read or write."""

DistinctItems = Annotated[
    Items[T],
    Field(json_schema_extra={"uniqueItems": True}),
    AfterValidator(_check_distinct),
]
"""A list without repetitions."""

ExtensionName = Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_]*$")]
"""A name that an extension may add (docs/extending.md).

`check_added` checks that an extension adds this name.
"""

# It is not made of DistinctItems, whose validator would keep min_length out of the JSON Schema.
SomeDistinctItems = Annotated[
    SomeItems[T],
    Field(json_schema_extra={"uniqueItems": True}),
    AfterValidator(_check_distinct),
]
"""A list with at least one item and without repetitions."""
