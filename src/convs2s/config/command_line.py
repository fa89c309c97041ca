"""Options of ``convs2s`` that stand in no file of the configuration."""

import argparse
from pathlib import Path
from typing import Annotated

from pydantic import Field

from convs2s.config.fields import PositiveFloat, PositiveInt, matching
from convs2s.config.messages import validated
from convs2s.config.runs import MOST_SEED
from convs2s.config.section import Section
from convs2s.errors import UserError
from convs2s.files.atomic import check_parent, check_place
from convs2s.files.limits import MOST_LINES_SHOWN, MOST_PROCESSES, MOST_RESAMPLES


class CommandOptions(Section):
    """Numbers that several commands take; each by the name of its option."""

    threads: Annotated[int, Field(ge=1, le=MOST_PROCESSES)] = 1
    """CPU threads."""
    workers: Annotated[int, Field(ge=0, le=MOST_PROCESSES)] = 1
    """Processes that share the work."""
    nodes: Annotated[int, Field(ge=1, le=MOST_PROCESSES)] = 1
    """Machines that share the work."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 1
    """Random seed."""
    time_limit: PositiveFloat | None = None
    """Minutes."""
    bytes: PositiveInt | None = None
    """Bytes to cut texts to."""
    samples: Annotated[int, Field(ge=1, le=MOST_RESAMPLES)] = 1000
    """Resamples of the bootstrap."""
    most: Annotated[int, Field(ge=1, le=MOST_LINES_SHOWN)] = 100
    """Lines to show."""
    feature: Annotated[
        str, matching(r"^[^\s=|]+$", "expected a name without blanks, '=' and '|'")
    ] = "Model"
    """Name of a feature in an n-best list."""


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
