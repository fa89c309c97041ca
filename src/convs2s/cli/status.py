"""``convs2s status``: how the trainings and jobs of a results folder are."""

import argparse
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from convs2s.cli.common import write_utf8
from convs2s.errors import UserError

WATCH_SECONDS = 2.0
"""Between two looks of --watch."""


def add_status(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Show how each training and job of a results folder is: running, locked, crashed with the "
        "last lines of its log, stopped and why, finished. It reads files alone, so the jobs may "
        "run on other machines that share them."
    )
    command.add_argument(
        "results",
        nargs="?",
        type=Path,
        default=Path("results"),
        help="folder of the results, or of a task or run in it [results]",
    )
    forms = command.add_mutually_exclusive_group()
    forms.add_argument("--watch", action="store_true", help="look again every two seconds")
    forms.add_argument("--json", action="store_true", help="one JSON object, times in seconds")
    command.set_defaults(run=_status)


def _status(arguments: argparse.Namespace) -> None:
    from convs2s.pipeline.status import status
    from convs2s.pipeline.status_view import console, view

    write_utf8()
    if arguments.json:
        json.dump(asdict(status(arguments.results)), sys.stdout, ensure_ascii=False, indent=2)
        print()
    elif arguments.watch:
        with suppress(KeyboardInterrupt):  # how one leaves it
            _watch(arguments.results)
    else:
        console().print(view(status(arguments.results)))


def _watch(results: Path) -> None:
    """Show the status until Ctrl-C.

    Raises:
        UserError: the output is no terminal, or there is no such folder.
    """
    from rich.live import Live

    from convs2s.pipeline.status import status
    from convs2s.pipeline.status_view import console, view

    out = console()
    if not out.is_terminal:
        raise UserError("--watch: the output is no terminal: leave it out, or use --json")
    with Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            live.update(view(status(results), rows=out.height), refresh=True)
            time.sleep(WATCH_SECONDS)
