"""``convs2s results``: the page of a scale's results, from a ledger."""

import argparse
import sys
from pathlib import Path

from convs2s.cli.common import write_utf8


def add_results(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Write every table of the papers as Markdown, from the lines of a ledger alone; run it in "
        "the folder of config.yaml and config/."
    )
    command.add_argument("ledger", type=Path, help="the ledger, a JSON line for each run")
    command.add_argument("--scale", required=True, help="the scale whose tables are shown")
    command.set_defaults(run=_results)


def _results(arguments: argparse.Namespace) -> None:
    from convs2s.config.load import load
    from convs2s.paper.ledger_entry import read_ledger
    from convs2s.paper.results_page import results_page

    settings = load(Path.cwd(), {"scale": arguments.scale}, given_by="--scale")
    write_utf8()
    sys.stdout.write(results_page(settings, read_ledger(arguments.ledger), str(arguments.ledger)))
