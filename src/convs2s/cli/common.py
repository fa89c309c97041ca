"""What several commands of ``convs2s`` share: common options and their checks, input and output."""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from convs2s.config.messages import validated
from convs2s.config.options import CommandOptions, Options
from convs2s.config.section import schema_of
from convs2s.errors import UserError
from convs2s.files.atomic import check_parent, check_place
from convs2s.files.limits import MOST_PROCESSES
from convs2s.files.text import bounded_lines, decode_lines


def add_device(command: argparse.ArgumentParser) -> None:
    """Add ``--device``."""
    default = Options.model_fields["device"].default
    add_choice(command, "device", str(default))
    command.set_defaults(device=default)


def add_choice(command: argparse.ArgumentParser, name: str, default: str) -> None:
    """Add an option whose choices and meaning are the configuration's; it is None by itself.

    Args:
        command: what gets the option.
        name: of a field of the options.
        default: what stands in its place, in words.
    """
    field = Options.model_fields[name]
    meaning = schema_of(Options)["properties"][name]["description"]
    choices = get_args(field.annotation)
    command.add_argument(f"--{name}", choices=choices, help=f"{meaning} [{default}]")


def add_threads(command: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    cores = min(os.cpu_count() or 1, MOST_PROCESSES)
    meaning = f"CPU threads [all cores of this machine: {cores}]"
    command.add_argument("--threads", type=int, default=cores, help=meaning)


def add_models(command: argparse.ArgumentParser) -> None:
    """Add the model files."""
    command.add_argument("model", nargs="+", type=Path, help="model file; several: an ensemble")


def standard_input() -> Iterator[str]:
    """Yield the standard input's lines; the standard output is ready for theirs."""
    write_utf8()
    name = "standard input"
    return decode_lines(bounded_lines(sys.stdin.buffer, name), name)


def write_utf8() -> None:
    """Write UTF-8 to the standard output, line by line as it comes."""
    sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)  # type: ignore[union-attr]


def check_options(arguments: argparse.Namespace) -> None:
    """Check what a command was given by the same rules as a file of the configuration.

    Raises:
        UserError: a number is out of its bounds, or there is no folder for the output.
    """
    given = {name: getattr(arguments, name, None) for name in CommandOptions.model_fields}
    stated = {name: value for name, value in given.items() if value is not None}
    validated(CommandOptions, stated, "options")
    makes: str = getattr(arguments, "makes_folder", "")
    for name in {"output", "items", makes} - {""}:
        path = getattr(arguments, name, None)
        if isinstance(path, Path):
            (check_parent if name == makes else check_place)(path)
    for name, value in vars(arguments).items():
        if "\0" in str(value):
            raise UserError(f"options: {name}: a name cannot hold the character NUL")
