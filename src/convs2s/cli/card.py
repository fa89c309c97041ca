"""``convs2s card``: where a model file comes from."""

import argparse
from pathlib import Path

from convs2s.cli.common import write_utf8


def add_card(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Print where a model file comes from, as Markdown: data with checksums, recipe, seed, "
        "languages; and the scores that lie beside it."
    )
    command.add_argument("model", type=Path, help="model file")
    command.set_defaults(run=_card)


def _card(arguments: argparse.Namespace) -> None:
    from convs2s.publish.card import model_card

    write_utf8()
    print(model_card(arguments.model), end="")
