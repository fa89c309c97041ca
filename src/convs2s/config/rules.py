"""The classes as JSON Schema: what messages, the reference page and editors read of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from convs2s.config.section import Section

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
