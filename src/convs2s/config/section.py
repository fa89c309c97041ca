"""A section of the configuration: its class, the kinds of its values, its JSON Schema."""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Values = dict[str, Any]
"""A mapping of YAML that no class has validated yet."""


class Section(BaseModel):
    """A mapping of the configuration: known keys only, values as they are meant, never changed.

    The class is the one place of a key: its type and bounds, its default, and the text below it,
    which messages, editors and docs/configuration.md show.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Add the text below each field as its description.

        This is what pydantic's ``use_attribute_docstrings`` does, but for those who ask: it would
        read the source of every class whenever the configuration is loaded.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for base in reversed(cls.__mro__):
            if issubclass(base, Section):
                for key, text in _attribute_docstrings(base).items():
                    properties[cls.model_fields[key].alias or key]["description"] = text
        return schema


S = TypeVar("S", bound=Section)


def replaced(section: S, texts: Mapping[str, str]) -> S:
    """Return a section with other texts in place of some, wherever they stand in it."""
    return type(section).model_validate(_replaced(section.model_dump(mode="json"), texts))


def _replaced(value: object, texts: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {key: _replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


@cache
def _attribute_docstrings(section: type[Section]) -> dict[str, str]:
    """Return the text below each field in the source of a class."""
    (definition,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


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


Rule = JsonSchemaValue
"""A JSON Schema, or a part of one, without references."""

Path = Sequence[str | int]
"""The way to a value: keys of mappings and indices of lists."""


class _Generator(GenerateJsonSchema):
    """JSON Schema in which the names of a mapping's entries have a rule of their own."""

    def dict_schema(self, schema: core_schema.DictSchema) -> Rule:
        """Return a mapping's schema; pydantic's own would let names that match nothing pass."""
        rule = super().dict_schema(schema)
        names = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        if "pattern" in names:
            (values,) = rule.pop("patternProperties").values()
            rule |= {"propertyNames": names, "additionalProperties": values}
        return rule

    def field_title_should_be_set(self, schema: object) -> bool:
        """Leave out titles, which would only repeat the keys."""
        return False


@cache
def rules(section: type[Section]) -> Rule:
    """Return the JSON Schema of a section, what it refers to put in place."""
    schema = section.model_json_schema(schema_generator=_Generator)
    inlined = _inlined(schema, schema.get("$defs", {}))
    assert isinstance(inlined, dict)
    return inlined


def alternatives(rule: Rule) -> list[Rule]:
    """Return what a value may be: the branches of a union, or the rule itself."""
    branches: list[Rule] = rule.get("anyOf") or rule.get("oneOf") or []
    return [one for branch in branches for one in alternatives(branch)] if branches else [rule]


def meant(rule: Rule, value: object) -> list[Rule]:
    """Return the alternatives of a rule that a mapping or list may be meant to meet.

    Of mappings with a kind, those of its kind; all of them where there is no such kind.
    """
    wanted = "object" if isinstance(value, dict) else "array"
    fitting = [one for one in alternatives(rule) if one.get("type") == wanted]
    kind = value.get("kind") if isinstance(value, dict) else None
    return [one for one in fitting if kind and constant_kind(one) == kind] or fitting


def child(rule: Rule, part: str | int, value: object) -> Rule | None:
    """Return the rule of a mapping's entry or a list's item; None where none is known.

    Args:
        rule: that of the mapping or list.
        part: the key or index.
        value: the mapping or list, which says what branch of a union is meant.
    """
    found = [below for one in meant(rule, value) if (below := _below(one, part)) is not None]
    return {"anyOf": found} if len(found) > 1 else next(iter(found), None)


def _below(rule: Rule, part: str | int) -> Rule | None:
    if rule["type"] == "array":
        return rule.get("items")
    others = rule.get("additionalProperties")
    found: Rule | None = rule.get("properties", {}).get(part, others)
    return found if isinstance(found, dict) else None


def constant_kind(rule: Rule) -> str | None:
    """Return the kind by which a branch of a union is known, if it is known by one."""
    kind: str | None = rule.get("properties", {}).get("kind", {}).get("const")
    return kind


def choices(rule: Rule) -> list[str]:
    """Return the texts that a rule lists; empty where it lists none."""
    listed: list[str] = []
    for one in alternatives(rule):
        listed += one.get("enum", [one["const"]] if "const" in one else [])
    return listed


def keys(rule: Rule, prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of every key below a rule, those in lists left out."""
    for one in alternatives(rule):
        for key, below in one.get("properties", {}).items():
            yield prefix + key
            yield from keys(below, f"{prefix}{key}.")


def _inlined(part: object, definitions: Mapping[str, object]) -> object:
    """Replace each ``$ref`` by what it names, keys beside it winning; write texts on one line."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    target = definitions.get(part.get("$ref", "").removeprefix("#/$defs/"), {})
    assert isinstance(target, dict)
    whole = {
        key: value for key, value in {**target, **part}.items() if not _is_left_out(key, value)
    }
    return {key: _inlined(_on_one_line(key, value), definitions) for key, value in whole.items()}


def _is_left_out(key: str, value: object) -> bool:
    """Tell what is of pydantic's own use; a key of the configuration may be called title."""
    return key in ("$defs", "$ref", "discriminator") or (key == "title" and isinstance(value, str))


def _on_one_line(key: str, value: object) -> object:
    is_text = key == "description" and isinstance(value, str)
    return " ".join(value.split()) if is_text else value  # type: ignore[attr-defined]
