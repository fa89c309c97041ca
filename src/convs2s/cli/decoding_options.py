"""The settings of config/decodings.yaml as options of a command."""

import argparse

from pydantic import BaseModel

from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.config.section import Schema, alternatives, choices, schema_of

OptionValue = float | int | str | bool


def add_decoding_options(command: argparse.ArgumentParser) -> None:
    """Add an option for each setting: its help and default are the configuration's."""
    for name, schema, default in _options(schema_of(DecodingSettings), DecodingSettings(), ""):
        flag = f"--{name.replace('_', '-')}"
        text = f"{schema['description']} [{default}]".replace("%", "%%")
        if isinstance(default, bool):
            action = argparse.BooleanOptionalAction
            command.add_argument(flag, dest=name, action=action, default=default, help=text)
        else:
            nullable = any(option.get("type") == "null" for option in alternatives(schema))
            command.add_argument(
                flag,
                dest=name,
                type=number_or_null if nullable else type(default),
                choices=choices(schema) or None,
                default=default,
                help=text,
            )


def number_or_null(text: str) -> int | None:
    """Read a whole number, or what the configuration calls null: no limit."""
    return None if text == "null" else int(text)


def decoding_settings(arguments: argparse.Namespace) -> DecodingSettings:
    """Return what the options say.

    Raises:
        UserError: a number is out of its bounds.
    """
    stated: dict[str, object] = {}
    for name, _, _ in _options(schema_of(DecodingSettings), DecodingSettings(), ""):
        section, _, key = name.rpartition(".")
        inside = stated.setdefault(section, {}) if section else stated
        assert isinstance(inside, dict)
        inside[key] = getattr(arguments, name)
    return validated(DecodingSettings, stated, "options")


def _options(
    schema: Schema, defaults: BaseModel, prefix: str
) -> list[tuple[str, Schema, OptionValue]]:
    """Return the dotted name, the schema and the default of each setting."""
    options: list[tuple[str, Schema, OptionValue]] = []
    for key, below in schema["properties"].items():
        default = getattr(defaults, key)
        if isinstance(default, BaseModel):
            options += _options(below, default, f"{prefix}{key}.")
        else:
            options.append((prefix + key, below, default))
    return options
