"""Options that several commands share, checks of all options, and the standard streams."""

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
from convs2s.config.section import S, Section
from convs2s.files.atomic import check_parent, check_place
from convs2s.files.limits import MOST_PROCESSES
from convs2s.files.text import read_lines, text_lines

RECIPE = PreparationRecipes.model_fields["test"]
"""The preparation of test sets, whose default is also the default of ``--preparation``."""


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    add_options: Callable[[argparse.ArgumentParser], None],
    text: str,
) -> None:
    """Add a command named ``name`` to a list of commands.

    ``text`` is its line in the help of the list. The docstring of ``add_options`` is its
    description in its own help.
    """
    description = " ".join(str(add_options.__doc__).split())
    add_options(commands.add_parser(name, help=text, description=description))


def add_models(command: argparse.ArgumentParser) -> None:
    """Add the positional argument for the model files."""
    command.add_argument(
        "model", nargs="+", type=Path, help="model file; several files make an ensemble"
    )


def add_device(command: argparse.ArgumentParser) -> None:
    """Add ``--device``."""
    default = Options.model_fields["device"].default
    add_choice(command, "device", str(default))
    command.set_defaults(device=default)


def add_choice(command: argparse.ArgumentParser, name: str, shown_default: str) -> None:
    """Add an option whose choices and help are those of the configuration key ``name``.

    Its default is None, so that the command can tell whether it was given. The help shows
    ``shown_default`` in brackets.
    """
    field = Options.model_fields[name]
    command.add_argument(
        f"--{name}",
        choices=get_args(field.annotation),
        help=f"{field.description} [{shown_default}]",
    )


def add_threads(command: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    cores = min(os.cpu_count() or 1, MOST_PROCESSES)
    meaning = f"number of CPU threads [all cores of this machine: {cores}]"
    command.add_argument("--threads", type=int, default=cores, help=meaning)


def add_systems(command: argparse.ArgumentParser) -> None:
    """Add the files of two systems' translations, and of their references."""
    command.add_argument(
        "baseline", type=Path, help="translations of one system, one per line"
    )
    command.add_argument("system", type=Path, help="translations of the other system")
    add_references(command)


def add_references(command: argparse.ArgumentParser, files: int | str = 1) -> None:
    """Add ``--reference``, which may be repeated.

    ``files`` is the number of files after each ``--reference``, as in argparse's ``nargs``.
    """
    command.add_argument(
        "--reference",
        type=Path,
        nargs=files,
        action="extend",
        required=True,
        help="reference file; repeat the option for several",
    )


def read_references(arguments: argparse.Namespace) -> tuple[list[list[str]], str]:
    """Return the lines of each reference, and the references' names to print beside a score."""
    references = [list(read_lines(path)) for path in arguments.reference]
    return references, " ".join(map(str, arguments.reference))


def add_tokenized(command: argparse.ArgumentParser) -> None:
    """Add ``--tokenized``, which chooses tokenized BLEU instead of detokenized BLEU."""
    command.add_argument(
        "--tokenized",
        action="store_true",
        help="texts are tokenized, with spaces between words (multi-bleu) [detokenized texts]",
    )


def add_section(
    command: argparse.ArgumentParser,
    section: type[Section],
    without: Collection[str] = (),
) -> None:
    """Add an option for each setting of a section, with the setting's description and default.

    The settings in ``without`` get no option and keep their defaults, because they have no effect
    on what the command does.
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
    """Return the whole number that a text states, or None for ``null``, which means no limit."""
    try:
        return None if text == "null" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a whole number or null, not {text!r}"
        ) from None


def read_section(arguments: argparse.Namespace, section: type[S]) -> S:
    """Return the section that the options state (``add_section``).

    Raises:
        UserError: a value is out of its bounds.
    """
    values: dict[str, object] = {}
    for name, default, _, _ in _settings(section()):
        inner_section, _, key = name.rpartition(".")
        target = values.setdefault(inner_section, {}) if inner_section else values
        assert isinstance(target, dict)
        target[key] = getattr(arguments, name, default)
    return validated(section, values, "options")


def _settings(
    defaults: Section, prefix: str = ""
) -> Iterator[tuple[str, object, object, str]]:
    """Yield the dotted name, the default, the type and the description of each setting.

    A setting of an inner section is named ``SECTION.KEY``.
    """
    for key, field in type(defaults).model_fields.items():
        default = getattr(defaults, key)
        if isinstance(default, Section):
            yield from _settings(default, f"{prefix}{key}.")
        else:
            yield prefix + key, default, field.annotation, str(field.description)


def check_options(arguments: argparse.Namespace) -> None:
    """Check the values of a command's options, and that its outputs can be written.

    ``makes_folder``, which a command sets among its defaults, is the name of the option for the
    folder that it creates.

    Raises:
        UserError: a value is out of its bounds, or an output cannot be written.
    """
    given = vars(arguments)
    names = [
        name for name in CommandOptions.model_fields if given.get(name) is not None
    ]
    values = {name: given[name] for name in names}
    validated(CommandOptions, values, "options")
    folder_option = given.get("makes_folder")
    if folder_option and isinstance(given[folder_option], Path):
        check_parent(given[folder_option])
    for name in ("output", "items"):
        if name != folder_option and isinstance(given.get(name), Path):
            check_place(given[name])


def standard_input() -> Iterator[str]:
    """Yield the lines of the standard input."""
    return text_lines(sys.stdin.buffer.readline, "standard input")


def prepare_streams() -> None:
    """Prepare the standard streams for text.

    The standard output is written in UTF-8, line by line, and takes file names that are not UTF-8.
    A stream that is closed is replaced by the null device. A stream that is in non-blocking mode,
    such as a pipe, is set to block, because text would be lost when it is full.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # not a file, as in a test
            os.set_blocking(stream.fileno(), True)
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding="utf-8", errors="surrogateescape", newline="\n", line_buffering=True
    )
