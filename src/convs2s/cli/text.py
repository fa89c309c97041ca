"""The commands ``convs2s tokenize`` and ``detokenize``."""

import re
from argparse import ArgumentParser, Namespace

from convs2s.cli.options import PREPARATION, Run, print_warning, standard_input
from convs2s.config.corpus import PREPARATIONS
from convs2s.errors import UserError


def add_tokenize(command: ArgumentParser) -> Run:
    """Split the raw text of the standard input into words, as a task's preparation does."""
    return _add_options(command, restores=False)


def add_detokenize(command: ArgumentParser) -> Run:
    """Turn the words of the standard input back into text, which undoes a preparation."""
    return _add_options(command, restores=True)


def _add_options(command: ArgumentParser, restores: bool) -> Run:
    command.add_argument(
        "--language", required=True, help="code of the language, such as en"
    )
    # No `choices`: an extension may add a preparation, and `Preparation` reports an unknown name
    # with the most similar known one.
    command.add_argument(
        "--preparation",
        default=PREPARATION,
        metavar="NAME",
        help=f"preparation, one of {', '.join(PREPARATIONS)} [{PREPARATION}]",
    )
    command.set_defaults(restores=restores)
    return _prepare


def _prepare(arguments: Namespace) -> None:
    from convs2s.text.languages import preparation_warning
    from convs2s.text.preparation import Preparation

    if not re.fullmatch("[a-z]{2,3}(_[a-z]+)?", arguments.language):
        raise UserError(
            f"--language {arguments.language}: expected a code of two or three lower-case letters, "
            "such as en for English"
        )
    print_warning(preparation_warning(arguments.language, arguments.preparation))
    preparation = Preparation(arguments.preparation, arguments.language)
    convert = preparation.restore if arguments.restores else preparation.prepare
    for line in standard_input():
        print(convert(line))
