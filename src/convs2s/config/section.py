"""A section of the configuration: its class, and the kinds of its values."""

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

Values = dict[str, Any]  # a mapping of YAML that no class has validated yet

S = TypeVar("S", bound="Section")
T = TypeVar("T")


class Section(BaseModel):
    """A mapping of the configuration: known keys only, values as they are meant, never changed.

    The class is the one place of a key: its type and bounds, its default, and the text below it,
    which editors and docs/configuration.md show.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, stated: object) -> object:
        """Name an unknown key together with those that there are, for the message."""
        is_closed = cls.model_config["extra"] == "forbid"
        if is_closed and isinstance(stated, dict) and not stated.keys() <= cls.model_fields.keys():
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in stated:
                if isinstance(key, str) and key not in known:
                    context = {"key": key, "known": known}
                    raise PydanticCustomError("unknown_key", "unknown key", context)
        return stated


@cache
def field_texts(section: type[Section]) -> dict[str, str]:
    """Return field -> the text below it, on one line."""
    # pydantic's use_attribute_docstrings does the same, but would read the source of every class
    # whenever the configuration is loaded.
    texts = {}
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
Processes = Annotated[int, Field(ge=1, le=MOST_PROCESSES)]  # or threads, or devices
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]

Probability = Annotated[float, Field(ge=0, lt=1)]  # a share of what there is, never all of it
Text = Annotated[str, Field(min_length=1)]  # a text that says something

Items = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of YAML, as a tuple: it cannot change either."""

SomeItems = Annotated[Items[T], Field(min_length=1)]
"""The same of one item at least."""


@dataclass(frozen=True)
class Expecting:
    """What a message says of any other value: "expected ...", in place of pydantic's words."""

    message: str
    pattern: str | None = None  # that a text has to match

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(Annotated[source, Field(pattern=self.pattern)])
        return core_schema.custom_error_schema(schema, "form", custom_error_message=self.message)


def _check_distinct(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(items)) < len(items):
        raise PydanticCustomError("repetition", "expected a list without repetitions")
    return items


FileName = Annotated[
    str,
    Expecting(
        "expected a name without { and }, between which Snakemake looks for a wildcard: rename the "
        "file or folder",
        pattern="^[^{}]+$",
    ),
]
"""Of a file or folder that rules read or write: a path or an address."""

DistinctItems = Annotated[
    Items[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_check_distinct)
]
"""A list that names nothing twice."""

ExtensionName = Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_]*$")]
"""Of what an extension may add (docs/extending.md); whether one does is checked afterwards."""

SomeDistinctItems = Annotated[
    SomeItems[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_check_distinct)
]
"""A list that names something, and nothing twice."""
