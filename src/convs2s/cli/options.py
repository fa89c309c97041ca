"""Options that several commands share, the checks of all, and the standard input and output."""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from convs2s.config.corpus import PreparationRecipes
from convs2s.config.messages import validated
from convs2s.config.options import CommandOptions, Options
from convs2s.config.section import S, Section, field_texts
from convs2s.files.atomic import check_parent, check_place
from convs2s.files.limits import MOST_PROCESSES
from convs2s.files.text import read_lines, text_lines

RECIPE = PreparationRecipes.model_fields["test"]
"""The preparation of test sets: what is meant where no option names one."""


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    add_options: Callable[[argparse.ArgumentParser], None],
    text: str,
) -> None:
    """Add a command: its line in the list, its options, and their docstring as its description."""
    description = " ".join(str(add_options.__doc__).split())
    add_options(commands.add_parser(name, help=text, description=description))


def add_models(command: argparse.ArgumentParser) -> None:
    """Add the model files."""
    command.add_argument("model", nargs="+", type=Path, help="model file; several: an ensemble")


def add_device(command: argparse.ArgumentParser) -> None:
    """Add ``--device``."""
    default = Options.model_fields["device"].default
    add_choice(command, "device", str(default))
    command.set_defaults(device=default)


def add_choice(command: argparse.ArgumentParser, name: str, shown_default: str) -> None:
    """Add an option whose choices and meaning are the configuration's; its default is None."""
    field = Options.model_fields[name]
    meaning = field_texts(Options)[name]
    command.add_argument(
        f"--{name}", choices=get_args(field.annotation), help=f"{meaning} [{shown_default}]"
    )


def add_threads(command: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    cores = min(os.cpu_count() or 1, MOST_PROCESSES)
    meaning = f"CPU threads [all cores of this machine: {cores}]"
    command.add_argument("--threads", type=int, default=cores, help=meaning)


def add_systems(command: argparse.ArgumentParser) -> None:
    """Add two systems' translations and their references."""
    command.add_argument("baseline", type=Path, help="file of one system's lines")
    command.add_argument("system", type=Path, help="file of the other system's lines")
    add_references(command)


def add_references(command: argparse.ArgumentParser, files: int | str = 1) -> None:
    """Add ``--reference``, which may be given several times, with so many files each."""
    command.add_argument(
        "--reference",
        type=Path,
        nargs=files,
        action="extend",
        required=True,
        help="reference file; repeat the option for several",
    )


def read_references(arguments: argparse.Namespace) -> tuple[list[list[str]], str]:
    """Return the lines of each reference, and the references' names as a score shows them."""
    references = [list(read_lines(path)) for path in arguments.reference]
    return references, " ".join(map(str, arguments.reference))


def add_tokenized(command: argparse.ArgumentParser) -> None:
    """Add ``--tokenized``, which chooses between the two forms of BLEU."""
    command.add_argument(
        "--tokenized", action="store_true", help="words are what spaces separate (multi-bleu)"
    )


def add_section(
    command: argparse.ArgumentParser, section: type[Section], without: Collection[str] = ()
) -> None:
    """Add an option for each setting of a section: its help and default are those.

    Settings ``without`` an effect on what the command does keep their defaults.
    """
    for name, default, annotation, meaning in _settings(section()):
        if name in without:
            continue
        form: dict[str, Any]
        if isinstance(default, bool):
            form = {"action": argparse.BooleanOptionalAction}
        elif NoneType in get_args(annotation):
            form = {"type": number_or_null}
        else:
            form = {"type": type(default)}
            if get_origin(annotation) is Literal:
                form["choices"] = get_args(annotation)
        command.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            default=default,
            help=f"{meaning} [{default}]".replace("%", "%%"),
            **form,
        )


def number_or_null(text: str) -> int | None:
    """Read a whole number, or what the configuration calls null: no limit."""
    try:
        return None if text == "null" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or null, not {text!r}") from None


def read_section(arguments: argparse.Namespace, section: type[S]) -> S:
    """Return what the options say; a UserError names a number that is out of its bounds."""
    stated: dict[str, object] = {}
    for name, default, _, _ in _settings(section()):
        above, _, key = name.rpartition(".")
        inside = stated.setdefault(above, {}) if above else stated
        assert isinstance(inside, dict)
        inside[key] = getattr(arguments, name, default)
    return validated(section, stated, "options")


def _settings(defaults: Section, prefix: str = "") -> Iterator[tuple[str, object, object, str]]:
    """Yield dotted name, default, type and text of each setting, of inner sections too."""
    for key, meaning in field_texts(type(defaults)).items():
        default = getattr(defaults, key)
        if isinstance(default, Section):
            yield from _settings(default, f"{prefix}{key}.")
        else:
            yield prefix + key, default, type(defaults).model_fields[key].annotation, meaning


def check_options(arguments: argparse.Namespace) -> None:
    """Check a command's options by the rules of the configuration, and the place of its output."""
    given = vars(arguments)
    names = [name for name in CommandOptions.model_fields if given.get(name) is not None]
    stated = {name: given[name] for name in names}
    validated(CommandOptions, stated, "options")
    folder = given.get("makes_folder")
    if folder and isinstance(given[folder], Path):
        check_parent(given[folder])
    for name in ("output", "items"):
        if name != folder and isinstance(given.get(name), Path):
            check_place(given[name])


def standard_input() -> Iterator[str]:
    """Yield the standard input's lines."""
    name = "standard input"
    return text_lines(sys.stdin.buffer.readline, name)


def prepare_streams() -> None:
    """Write UTF-8, and file names that are none, line by line; a closed stream becomes empty."""
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # no file, as in a test
            os.set_blocking(stream.fileno(), True)  # or text is lost at a full pipe
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding="utf-8", errors="surrogateescape", newline="\n", line_buffering=True
    )
