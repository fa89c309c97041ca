"""A section of the configuration: its class, the kinds of its values, its JSON Schema."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from convs2s.files.limits import MOST_PROCESSES

Values = dict[str, Any]  # a mapping of YAML that no class has validated yet
Schema = JsonSchemaValue  # a JSON Schema, or a part of one, without references

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

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Add the text below each field as its description."""
        # pydantic's use_attribute_docstrings does the same, but would read the source of every
        # class whenever the configuration is loaded.
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for base in reversed(cls.__mro__):
            if issubclass(base, Section):
                for name, text in _attribute_docstrings(base).items():
                    key = cls.model_fields[name].alias or name
                    properties[key]["description"] = text
        return schema


@cache
def _attribute_docstrings(section: type[Section]) -> dict[str, str]:
    """Return field -> the text below it."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = inspect.cleandoc(text)
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


def matching(pattern: str, message: str) -> FieldInfo:
    """Return the bound of a text that has a certain form; ``message`` says "expected ..."."""
    # This name is what editors know such a message by (yaml-language-server).
    field: FieldInfo = Field(pattern=pattern, json_schema_extra={"patternErrorMessage": message})
    return field


def _check_distinct(items: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(items)) < len(items):
        raise PydanticCustomError("repetition", "expected a list without repetitions")
    return items


FileName = Annotated[
    str,
    matching(
        "^[^{}]+$",
        "expected a name without { and }, between which Snakemake looks for a wildcard: rename the "
        "file or folder",
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


class _Generator(GenerateJsonSchema):
    """JSON Schema in which the names of a mapping's entries have a schema of their own."""

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """Return a mapping's schema; pydantic's own would let names that match nothing pass."""
        mapping = super().dict_schema(schema)
        names = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        if "pattern" in names:
            (values,) = mapping.pop("patternProperties").values()
            mapping |= {"propertyNames": names, "additionalProperties": values}
        return mapping


@cache
def schema_of(section: type[Section]) -> Schema:
    """Return the JSON Schema of a section, what it refers to put in place."""
    schema = section.model_json_schema(schema_generator=_Generator)
    inlined = _inlined(schema, schema.get("$defs", {}))
    assert isinstance(inlined, dict)
    return inlined


def _inlined(part: object, definitions: Mapping[str, Schema]) -> object:
    """Replace each ``$ref`` by what it names, keys beside it winning; write texts on one line."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    target = definitions.get(part.get("$ref", "").removeprefix("#/$defs/"), {})
    inlined: Schema = {}
    for key, value in {**target, **part}.items():
        if key in ("$defs", "$ref", "discriminator"):
            continue
        if key == "title" and isinstance(value, str):
            continue  # it repeats the key; where it is no text, title is a key of the configuration
        if key == "description" and isinstance(value, str):
            inlined[key] = " ".join(value.split())
        else:
            inlined[key] = _inlined(value, definitions)
    return inlined


def alternatives(schema: Schema) -> list[Schema]:
    """Return what a value may be: the branches of a union, or the schema itself."""
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not branches:
        return [schema]
    found = []
    for branch in branches:
        found += alternatives(branch)
    return found


def constant_kind(schema: Schema) -> str | None:
    """Return the kind by which a branch of a union is known, if it is known by one."""
    constant: str | None = schema.get("properties", {}).get("kind", {}).get("const")
    return constant


def choices(schema: Schema) -> list[str]:
    """Return the texts that a schema lists; empty where it lists none."""
    listed: list[str] = []
    for option in alternatives(schema):
        if "const" in option:
            listed.append(option["const"])
        listed += option.get("enum", ())
    return listed
