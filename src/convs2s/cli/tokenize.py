"""``convs2s tokenize`` and ``detokenize``: the standard input, as test sets are prepared."""

import argparse

from convs2s.cli.common import standard_input


def add_tokenize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``tokenize``."""
    _add_language(command)
    command.set_defaults(run=_tokenize)


def add_detokenize(command: argparse.ArgumentParser) -> None:
    """Add the options of ``detokenize``."""
    _add_language(command)
    command.set_defaults(run=_detokenize)


def _add_language(command: argparse.ArgumentParser) -> None:
    command.add_argument("--language", required=True, help="two-letter code, such as en")


def _tokenize(arguments: argparse.Namespace) -> None:
    from convs2s.text.preparation import Preparation

    preparation = Preparation("moses_test", arguments.language)
    for line in standard_input():
        print(preparation.prepare(line))


def _detokenize(arguments: argparse.Namespace) -> None:
    from convs2s.text.preparation import Preparation

    preparation = Preparation("moses_test", arguments.language)
    for line in standard_input():
        print(preparation.restore(line))
