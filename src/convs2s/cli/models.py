"""``convs2s import`` and ``card``: model files, made of other toolkits' and described."""

import argparse
from pathlib import Path

from convs2s.cli.options import RECIPE, write_utf8
from convs2s.config.corpus import PREPARATIONS


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the toolkits of ``import``."""
    toolkits = command.add_subparsers(required=True, metavar="TOOLKIT")
    fairseq = toolkits.add_parser("fairseq", help="a convolutional model that fairseq trained")
    fairseq.description = "Make a model file of an fconv model; nothing in the checkpoint is run."
    fairseq.add_argument("checkpoint", type=Path, help="such as model.pt or checkpoint_best.pt")
    for side in ("source", "target"):
        fairseq.add_argument(
            f"--{side}-dictionary", type=Path, required=True, help="its dict.LANGUAGE.txt"
        )
    fairseq.add_argument("--bpe-codes", type=Path, help="its BPE codes; none: whole words")
    fairseq.add_argument(
        "--languages", nargs=2, metavar=("SOURCE", "TARGET"), help="[what the checkpoint states]"
    )
    fairseq.add_argument(
        "--preparation",
        choices=PREPARATIONS,
        default=RECIPE.default,
        help=f"how raw text becomes the words that the codes split [{RECIPE.default}]",
    )
    fairseq.add_argument("--output", type=Path, required=True, help="the model file to write")
    fairseq.set_defaults(run=_import_fairseq)


def _import_fairseq(arguments: argparse.Namespace) -> None:
    from convs2s.interop.fairseq import FairseqFiles, import_fairseq

    languages = arguments.languages
    import_fairseq(
        FairseqFiles(
            arguments.checkpoint,
            arguments.source_dictionary,
            arguments.target_dictionary,
            arguments.bpe_codes,
        ),
        arguments.output,
        task=arguments.output.stem,
        languages=dict(zip(("source", "target"), languages, strict=True)) if languages else None,
        preparation=arguments.preparation,
    )


def add_card(command: argparse.ArgumentParser) -> None:
    """Add the options of ``card``."""
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
