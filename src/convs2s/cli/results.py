"""``convs2s results``: the page of a scale's results, from a ledger."""

import argparse
from pathlib import Path


def add_results(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Write every table of the papers and the claims as Markdown, and their plots beside it, "
        "from the lines of a ledger alone; run it in the folder of config.yaml and config/."
    )
    command.add_argument("ledger", type=Path, help="the ledger, a JSON line for each run")
    command.add_argument("--scale", required=True, help="the scale whose tables are shown")
    command.add_argument("--discussion", type=Path, help="Markdown to put before the numbers")
    command.add_argument("--output", type=Path, required=True, help="the page, a .md file")
    command.set_defaults(run=_results)


def _results(arguments: argparse.Namespace) -> None:
    from convs2s.config.load import load
    from convs2s.files.text import read_lines
    from convs2s.paper.ledger import read_ledger
    from convs2s.paper.results_page import write_results_page

    said = read_lines(arguments.discussion) if arguments.discussion else ()
    write_results_page(
        load(Path.cwd(), {"scale": arguments.scale}, given_by="--scale"),
        read_ledger(arguments.ledger),
        ledger=str(arguments.ledger),
        discussion="".join(f"{line}\n" for line in said),
        output=arguments.output,
    )
