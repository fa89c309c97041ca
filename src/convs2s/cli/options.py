"""Options that several commands share, checks of all options, and the standard streams."""

import os
import sys
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, get_origin

from pydantic.fields import FieldInfo

from convs2s.config.bleu import BleuForm
from convs2s.config.corpus import PreparationRecipes
from convs2s.config.messages import validated
from convs2s.config.options import CommandOptions, Options
from convs2s.config.section import S, Section, Values, field_texts
from convs2s.errors import UserError
from convs2s.files.atomic import check_place
from convs2s.files.limits import MOST_PROCESSES
from convs2s.files.text import read_lines, text_lines

if TYPE_CHECKING:
    from convs2s.config.settings import Settings

Run = Callable[[Namespace], None]
"""A function that runs a command with its parsed options."""

Commands = Mapping[str, tuple[Callable[[ArgumentParser], Run | None], str]]
"""Name of a command -> the function that adds its options, and its line in the list of commands.

The function that adds the options returns the function that runs the command, or None if the
command only has commands of its own. The docstring of the first function is the description in the
help of the command.
"""

PREPARATION = PreparationRecipes.model_fields["test"].default
"""The default of ``--preparation``: the preparation of test sets."""


class TakesArguments(Protocol):
    """A parser of a command, or a group of its options; argparse has no public class for both."""

    def add_argument(self, *names: str, **settings: Any) -> object:
        """Add an argument, as ``ArgumentParser.add_argument`` does."""


def add_commands(
    parser: ArgumentParser,
    metavar: str,
    commands: Commands,
) -> None:
    """Add commands to a parser. A user has to name one of them; the usage calls it ``metavar``."""
    parsers = parser.add_subparsers(required=True, metavar=metavar)
    for name, (add_options, text) in commands.items():
        description = " ".join(str(add_options.__doc__).split())
        command = parsers.add_parser(name, help=text, description=description)
        command.set_defaults(run=add_options(command))


def add_file(
    command: TakesArguments,
    name: str,
    meaning: str,
    **settings: Any,
) -> None:
    """Add an argument that is a path; ``settings`` are further arguments of ``add_argument``."""
    command.add_argument(name, type=Path, help=meaning, **settings)


def add_flag(
    command: TakesArguments,
    name: str,
    meaning: str,
) -> None:
    """Add an option that takes no value: True if a user gives it, and False otherwise."""
    command.add_argument(name, action="store_true", help=meaning)


def add_models(command: ArgumentParser) -> None:
    """Add the positional argument for the model files."""
    add_file(
        command,
        "model",
        "model file, or name of a published model (`convs2s get`); several make an ensemble",
        nargs="+",
    )


def model_files(named: Iterable[Path]) -> list[Path]:
    """Return the files of models that are named by their paths or as published models.

    If a published model has not been fetched yet, a user at a terminal is asked whether to fetch
    it. Without a terminal, this is an error.

    Raises:
        UserError: A published model has not been fetched, and nobody agreed to fetch it.
    """
    return [path if path.exists() else _published(path) for path in named]


def _published(path: Path) -> Path:
    """Return the file of the published model with this name; ``path`` itself if there is none."""
    from convs2s.interop.published import file_of, get_model, published_models

    model = published_models().get(str(path))
    if model is None:
        return path
    file = file_of(model)
    if file.is_file():
        return file
    if sys.stdin.isatty():
        size = f"{model.bytes / 1e6:,.0f} MB" if model.bytes else "size not known"
        print(
            f"{path}: fetch {model.url} ({size}, {model.licence})? [y/N] ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        if sys.stdin.buffer.readline().strip().lower() in (b"y", b"yes"):
            return get_model(model)
    raise UserError(
        f"{path}: not on this machine yet: fetch it by `convs2s get {path}`"
    )


def add_device(command: ArgumentParser) -> None:
    """Add ``--device``."""
    default = Options.model_fields["device"].default
    add_choice(command, "device", default)
    command.set_defaults(device=default)


def add_choice(
    command: ArgumentParser,
    name: str,
    shown_default: str,
) -> None:
    """Add an option whose choices and help are those of the key ``name`` of config.yaml.

    The default is None, so that the command can tell whether the option was given. The help shows
    ``shown_default`` in brackets.
    """
    command.add_argument(
        f"--{name}",
        choices=get_args(Options.model_fields[name].annotation),
        help=f"{field_texts(Options)[name]} [{shown_default}]",
    )


def add_threads(command: ArgumentParser) -> None:
    """Add ``--threads``."""
    cores = min(os.cpu_count() or 1, MOST_PROCESSES)
    meaning = f"number of CPU threads [all cores of this machine: {cores}]"
    command.add_argument("--threads", type=int, default=cores, help=meaning)


def add_systems(command: ArgumentParser) -> None:
    """Add the files of two systems' translations, ``--reference``, and options of tokenization."""
    add_file(command, "baseline", "translations of one system, one per line")
    add_file(command, "system", "translations of the other system")
    add_references(command)
    add_tokenized(command)


def add_references(command: ArgumentParser, nargs: int | str = 1) -> None:
    """Add ``--reference``, which may be repeated; ``nargs`` is the number of files after it."""
    add_file(
        command,
        "--reference",
        "reference file; repeat the option for several",
        nargs=nargs,
        action="extend",
        required=True,
    )


def read_references(arguments: Namespace) -> tuple[list[list[str]], str]:
    """Return the lines of each reference, and the references' names to print beside a score."""
    references = [list(read_lines(path)) for path in arguments.reference]
    return references, " ".join(map(str, arguments.reference))


def print_warning(warning: str | None) -> None:
    """Print a warning on the standard error, if there is one."""
    if warning:
        print(f"convs2s: warning: {warning}", file=sys.stderr)


def add_tokenized(command: ArgumentParser) -> None:
    """Add ``--tokenized`` and ``--tokenize``, which set ``form``: how BLEU finds words."""
    either = command.add_mutually_exclusive_group()
    either.add_argument(
        "--tokenized",
        dest="form",
        action="store_const",
        const="tokenized",
        help="texts are tokenized, with spaces between words (multi-bleu) [detokenized texts]",
    )
    either.add_argument(
        "--tokenize",
        dest="form",
        choices=[form for form in get_args(BleuForm) if form != "tokenized"],
        help="sacrebleu's tokenizer for detokenized texts: zh for Chinese, char for other scripts "
        "without blanks, intl for punctuation of all scripts [13a, which is mteval's]",
    )
    command.set_defaults(form="13a")


def add_section(
    command: ArgumentParser,
    section: type[Section],
    without: Collection[str] = (),
) -> None:
    """Add an option for each setting of a section, with the setting's description and default.

    The settings in ``without`` get no option and keep their defaults, because they have no effect
    on what the command does.
    """
    for name, field, meaning in _settings(section):
        if name in without:
            continue
        # How argparse reads the option's value.
        form: dict[str, Any] = {"type": type(field.default)}
        if field.annotation is bool:
            # This action adds --NAME and --no-NAME.
            form = {"action": BooleanOptionalAction}
        elif NoneType in get_args(field.annotation):
            form = {"type": number_or_null}
        elif get_origin(field.annotation) is Literal:
            form["choices"] = get_args(field.annotation)
        # argparse formats help texts with %, so a literal % is doubled.
        text = f"{meaning} [{field.default}]".replace("%", "%%")
        command.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            default=field.default,
            help=text,
            **form,
        )


def number_or_null(text: str) -> int | None:
    """Return the whole number that a text states, or None for ``null``, which means no limit."""
    try:
        return None if text == "null" else int(text)
    except ValueError:
        raise ArgumentTypeError(
            f"expected a whole number or null, not {text!r}"
        ) from None


def read_section(arguments: Namespace, section: type[S]) -> S:
    """Return the section that the options of ``add_section`` state.

    Raises:
        UserError: A value is out of its bounds.
    """
    values: Values = {}
    for name, _, _ in _settings(section):
        if name in arguments:
            inner_section, _, key = name.rpartition(".")
            values_of_section = values
            if inner_section:
                values_of_section = values.setdefault(inner_section, {})
            values_of_section[key] = getattr(arguments, name)
    return validated(section, values, "options")


def _settings(
    section: type[Section], prefix: str = ""
) -> Iterator[tuple[str, FieldInfo, str]]:
    """Yield the dotted name, the field and the description of each setting of a section.

    A setting of an inner section is named ``SECTION.KEY``.
    """
    for key, meaning in field_texts(section).items():
        field = section.model_fields[key]
        if isinstance(field.default, Section):
            yield from _settings(type(field.default), f"{prefix}{key}.")
        else:
            yield prefix + key, field, meaning


def read_configuration(
    given: Mapping[str, object] | None = None,
    given_by: str | None = None,
) -> "Settings":
    """Return the configuration below the current folder; see `load`.

    A warning is printed for a task whose file is not valid. A command that needs the task calls
    ``Settings.check_whole``.
    """
    # Few commands read the configuration, so it is imported here.
    from convs2s.config.load import load

    settings = load(Path.cwd(), given, given_by=given_by)
    for warning in settings.warnings():
        print_warning(warning)
    return settings


def check_options(arguments: Namespace) -> None:
    """Check the values of a command's options, and that its outputs can be written.

    Raises:
        UserError: A value is out of its bounds, or an output cannot be written.
    """
    values = {}
    for name in CommandOptions.model_fields:
        value = getattr(arguments, name, None)
        if value is not None:
            values[name] = value
    validated(CommandOptions, values, "options")
    # The options that name a file to write.
    for name in ("output", "items"):
        path = getattr(arguments, name, None)
        if path is not None:
            check_place(path)


def standard_input() -> Iterator[str]:
    """Yield the lines of the standard input."""
    return text_lines(sys.stdin.buffer.readline, "standard input")


def prepare_streams() -> None:
    """Prepare the standard streams for text.

    The standard output is written in UTF-8, line by line, and accepts file names that are not
    UTF-8. A closed stream is replaced by the null device. A stream in non-blocking mode, such as a
    pipe of another program, is set to block, because text would be lost whenever the pipe is full.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A test may replace a stream by an object that is not a file.
        with suppress(OSError, ValueError):
            os.set_blocking(stream.fileno(), True)
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding="utf-8", errors="surrogateescape", newline="\n", line_buffering=True
    )
