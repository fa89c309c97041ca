"""What all sections of the configuration have in common."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


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
