"""JSON Schema of the configuration's classes, what it refers to put in place."""

from collections.abc import Mapping
from functools import cache

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from convs2s.config.section import Section

Schema = JsonSchemaValue  # a JSON Schema, or a part of one, without references


class _Generator(GenerateJsonSchema):
    """JSON Schema with the messages of fields, and a schema for the names of a mapping."""

    def custom_error_schema(self, schema: core_schema.CustomErrorSchema) -> Schema:
        """Return the schema with its message, by the name that yaml-language-server knows."""
        message = schema.get("custom_error_message")
        return super().custom_error_schema(schema) | {"patternErrorMessage": message}

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """Return a mapping's schema; pydantic's own would let names that match nothing pass."""
        mapping = super().dict_schema(schema)
        names = (
            self.generate_inner(schema["keys_schema"])
            if "keys_schema" in schema
            else {}
        )
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
            # It repeats the key; where it is no text, title is a key of the
            # configuration.
            continue
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
