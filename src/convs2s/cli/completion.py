"""``convs2s completion``: the script by which a shell completes what is typed."""

import argparse
from pathlib import Path

from convs2s.cli.examples import commands_below


def add_completion(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Print the script by which a shell completes commands, options and file names after Tab. "
        "Make it anew after an update of this program (docs/command_line.md)."
    )
    command.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    command.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> None:
    import shtab

    _complete_files(arguments.parser, shtab.FILE)
    print(shtab.complete(arguments.parser, shell=arguments.shell))


def _complete_files(parser: argparse.ArgumentParser, file: object) -> None:
    """Have files completed wherever a path is expected, also by the commands below."""
    for action in parser._actions:
        if action.type is Path:
            action.complete = file  # type: ignore[attr-defined]
    for below in commands_below(parser).values():
        _complete_files(below, file)
