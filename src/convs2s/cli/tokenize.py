"""``convs2s tokenize`` and ``detokenize``: the standard input, by a preparation."""

import argparse
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from convs2s.cli.common import standard_input
from convs2s.config.corpus import PreparationRecipes
from convs2s.errors import UserError

if TYPE_CHECKING:
    from convs2s.text.preparation import Preparation


def add_tokenize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``tokenize``."""
    command.description = "Turn raw text into words, as a task's preparation does it."
    _add_options(command)
    command.set_defaults(run=_tokenize)


def add_detokenize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``detokenize``."""
    command.description = "Turn the words of a preparation into text."
    _add_options(command)
    command.set_defaults(run=_detokenize)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--language", required=True, help="two-letter code, such as en")
    recipe = PreparationRecipes.model_fields["test"]
    # Any name, so that an unknown one is answered with the nearest that there is.
    command.add_argument(
        "--preparation",
        default=recipe.default,
        metavar="NAME",
        help=f"one of {', '.join(get_args(recipe.annotation))} [{recipe.default}]",
    )


def _tokenize(arguments: argparse.Namespace) -> None:
    _print_lines(_preparation(arguments).prepare)


def _detokenize(arguments: argparse.Namespace) -> None:
    _print_lines(_preparation(arguments).restore)


def _preparation(arguments: argparse.Namespace) -> "Preparation":
    from sacremoses.corpus import NonbreakingPrefixes

    from convs2s.text.preparation import Preparation

    if not re.fullmatch("[a-z]{2,3}(_[a-z]+)?", arguments.language):
        raise UserError(
            f"--language {arguments.language}: expected a code of two or three small letters, such "
            "as en for English"
        )
    code = arguments.language.partition("_")[0]
    if code not in NonbreakingPrefixes().available_langs.values():
        print(
            f"convs2s: warning: '{code}' has no list of abbreviations: those of English are taken "
            "(docs/preparation.md)",
            file=sys.stderr,
        )
    return Preparation(arguments.preparation, arguments.language)


def _print_lines(step: Callable[[str], str]) -> None:
    for line in standard_input():
        print(step(line))
