"""``convs2s import``: a model file of another toolkit's model."""

import argparse
from pathlib import Path
from typing import get_args

from convs2s.config.corpus import PreparationRecipes


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the toolkits."""
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
    recipe = PreparationRecipes.model_fields["test"]
    fairseq.add_argument(
        "--preparation",
        choices=get_args(recipe.annotation),
        default=recipe.default,
        help=f"how raw text becomes the words that the codes split [{recipe.default}]",
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
