"""The commands ``convs2s import``, ``export``, ``pull``, ``push`` and ``card`` for model files."""

import argparse
from pathlib import Path

from convs2s.cli.options import RECIPE
from convs2s.config.corpus import PREPARATIONS, Languages
from convs2s.config.messages import validated
from convs2s.files.atomic import check_not_read


def add_import(command: argparse.ArgumentParser) -> None:
    """Convert a model that another toolkit has trained into a model file."""
    toolkits = command.add_subparsers(required=True, metavar="TOOLKIT")
    fairseq = toolkits.add_parser(
        "fairseq", help="a convolutional model that fairseq trained"
    )
    fairseq.description = (
        "Convert an fconv model of fairseq into a model file. "
        "No code in the checkpoint is run."
    )
    fairseq.add_argument(
        "checkpoint",
        type=Path,
        help="fairseq checkpoint, such as model.pt or checkpoint_best.pt",
    )
    for side in ("source", "target"):
        fairseq.add_argument(
            f"--{side}-dictionary",
            type=Path,
            required=True,
            help=f"dict.LANGUAGE.txt of the {side} language",
        )
    fairseq.add_argument(
        "--bpe-codes", type=Path, help="BPE codes of the model [whole words]"
    )
    fairseq.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes [those in the checkpoint]",
    )
    fairseq.add_argument(
        "--preparation",
        choices=PREPARATIONS,
        default=RECIPE.default,
        help=f"preparation that splits raw text into words, before BPE [{RECIPE.default}]",
    )
    fairseq.add_argument(
        "--output", type=Path, required=True, help="model file to write"
    )
    fairseq.set_defaults(run=_import_fairseq)


def _import_fairseq(arguments: argparse.Namespace) -> None:
    from convs2s.interop.fairseq import FairseqFiles, import_fairseq

    languages = arguments.languages
    if languages is not None:
        source, target = languages
        stated = {"source": source, "target": target}
        languages = validated(Languages, stated, "--languages").model_dump()
    files = FairseqFiles(
        checkpoint=arguments.checkpoint,
        source_dictionary=arguments.source_dictionary,
        target_dictionary=arguments.target_dictionary,
        bpe_codes=arguments.bpe_codes,
    )
    check_not_read(arguments.output, filter(None, vars(files).values()))
    import_fairseq(
        files,
        arguments.output,
        task=arguments.output.stem,
        languages=languages,
        preparation=arguments.preparation,
    )


def add_card(command: argparse.ArgumentParser) -> None:
    """Print the model card of a model file, in Markdown.

    It states the training data with checksums, the recipe, the seed and the languages, and the
    scores in the folder of the model file.
    """
    command.add_argument("model", type=Path, help="model file")
    command.set_defaults(run=_card)


def _card(arguments: argparse.Namespace) -> None:
    from convs2s.publish.card import model_card

    print(model_card(arguments.model), end="")


def add_export(command: argparse.ArgumentParser) -> None:
    """Write a model in the format of another program."""
    formats = command.add_subparsers(dest="format", required=True, metavar="FORMAT")
    hub = formats.add_parser("hub", help="a folder for the Hugging Face Hub")
    hub.description = (
        "Write a folder for the Hugging Face Hub with the model file, its vocabularies and BPE "
        "codes, its configuration, and a model card with the scores in the folder of the model "
        "file."
    )
    hub.add_argument(
        "--license",
        default="unknown",
        help="license of the model, in the Hub's spelling, such as mit or cc-by-4.0 [unknown]",
    )
    onnx = formats.add_parser("onnx", help="graphs for ONNX Runtime")
    onnx.description = (
        "Write a ConvS2S model as ONNX graphs (the encoder, one decoder step, the output layer), "
        "with its vocabularies and BPE codes (docs/publishing.md)."
    )
    for export_format in (hub, onnx):
        export_format.add_argument("model", type=Path, help="model file")
        export_format.add_argument("folder", type=Path, help="folder to create")
        export_format.set_defaults(run=_export, makes_folder="folder")


def _export(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import export_hub, export_onnx

    if arguments.format == "hub":
        export_hub(arguments.model, arguments.folder, arguments.license)
    else:
        export_onnx(arguments.model, arguments.folder)


def add_pull(command: argparse.ArgumentParser) -> None:
    """Download a model from the Hugging Face Hub into a new folder and check it.

    This needs the extra `hub` of the package.
    """
    command.add_argument("repository", help="repository on the Hub, USER/NAME")
    command.add_argument("folder", type=Path, nargs="?", help="folder to create [NAME]")
    command.add_argument("--revision", help="commit, tag or branch [the newest commit]")
    command.set_defaults(run=_pull, makes_folder="folder")


def _pull(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import pull

    folder = arguments.folder or Path(
        arguments.repository.rstrip("/").rpartition("/")[2]
    )
    pull(arguments.repository, folder, arguments.revision)
    print(folder / "model.safetensors")


def add_push(command: argparse.ArgumentParser) -> None:
    """Upload a folder of `convs2s export hub` to the Hugging Face Hub, as one commit.

    This needs the extra `hub` of the package.
    """
    command.add_argument("folder", type=Path, help="folder to upload")
    command.add_argument("repository", help="existing repository on the Hub, USER/NAME")
    command.set_defaults(run=_push)


def _push(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import push

    print(push(arguments.folder, arguments.repository))
