"""``convs2s import``, ``export``, ``pull``, ``push``, ``card``: model files, others' forms too."""

import argparse
from pathlib import Path

from convs2s.cli.options import RECIPE
from convs2s.config.corpus import PREPARATIONS, Languages
from convs2s.config.messages import validated
from convs2s.files.atomic import check_not_read


def add_import(command: argparse.ArgumentParser) -> None:
    """Make a model file of a model that another toolkit has trained."""
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
    """Print where a model file comes from, as Markdown.

    Data with checksums, recipe, seed, languages; and the scores that lie beside it.
    """
    command.add_argument("model", type=Path, help="model file")
    command.set_defaults(run=_card)


def _card(arguments: argparse.Namespace) -> None:
    from convs2s.publish.card import model_card

    print(model_card(arguments.model), end="")


def add_export(command: argparse.ArgumentParser) -> None:
    """Write a model in the form of another program."""
    forms = command.add_subparsers(dest="form", required=True, metavar="FORM")
    hub = forms.add_parser("hub", help="a folder of the Hugging Face Hub")
    hub.description = (
        "Write a folder as the Hub has it: the model file, its vocabularies and BPE codes, its "
        "configuration, and a card with the scores that lie beside the model file."
    )
    hub.add_argument(
        "--license", default="unknown", help="the model's, as the Hub names it: mit, cc-by-4.0"
    )
    onnx = forms.add_parser("onnx", help="graphs for ONNX Runtime")
    onnx.description = (
        "Write a ConvS2S model as graphs of ONNX (encoder, a decoder's step, output layer), with "
        "its vocabularies and BPE codes (docs/publishing.md)."
    )
    for form in (hub, onnx):
        form.add_argument("model", type=Path, help="model file")
        form.add_argument("folder", type=Path, help="the folder to make")
        form.set_defaults(run=_export, makes_folder="folder")


def _export(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import export_hub, export_onnx

    if arguments.form == "hub":
        export_hub(arguments.model, arguments.folder, arguments.license)
    else:
        export_onnx(arguments.model, arguments.folder)


def add_pull(command: argparse.ArgumentParser) -> None:
    """Bring a model of the Hugging Face Hub into a new folder and check it (extra: hub)."""
    command.add_argument("repository", help="USER/NAME")
    command.add_argument("folder", type=Path, nargs="?", help="the folder to make [NAME]")
    command.add_argument("--revision", help="a commit, tag or branch [the newest commit]")
    command.set_defaults(run=_pull, makes_folder="folder")


def _pull(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import pull

    folder = arguments.folder or Path(arguments.repository.rstrip("/").rpartition("/")[2])
    pull(arguments.repository, folder, arguments.revision)
    print(folder / "model.safetensors")


def add_push(command: argparse.ArgumentParser) -> None:
    """Send a folder of convs2s export hub to the Hugging Face Hub, as one commit (extra: hub)."""
    command.add_argument("folder", type=Path, help="the folder")
    command.add_argument("repository", help="USER/NAME, which exists")
    command.set_defaults(run=_push)


def _push(arguments: argparse.Namespace) -> None:
    from convs2s.publish.hub import push

    print(push(arguments.folder, arguments.repository))
