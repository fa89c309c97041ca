"""``convs2s export-results``: what a results folder's numbers rest on, in one archive."""

import argparse
from pathlib import Path


def add_export_results(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Write what the numbers of a results folder rest on, with checksums and RO-Crate metadata: "
        "scores, translations, references, settings, histories, versions, model cards. A reader "
        "can check every number without training."
    )
    command.add_argument("folder", type=Path, help="results, or those of a task")
    command.add_argument("output", type=Path, help="NAME.zip, or a folder to make")
    command.add_argument(
        "--without-text",
        action="store_true",
        help="leave out what holds source sentences or references, where the data's license asks "
        "for that; their checksums stay",
    )
    command.set_defaults(run=_export_results, makes_folder="output")


def _export_results(arguments: argparse.Namespace) -> None:
    from convs2s.publish.results import export_results

    export_results(arguments.folder, arguments.output, with_text=not arguments.without_text)
