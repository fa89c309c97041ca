"""The commands of model files: ``get``, ``import``, ``export``, ``pull``, ``push`` and ``card``."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from convs2s.cli.options import PREPARATION, Commands, Run, add_commands, add_file
from convs2s.config.corpus import PREPARATIONS, Languages
from convs2s.config.messages import check_known, validated
from convs2s.files.atomic import check_not_read, check_parent


def add_get(command: ArgumentParser) -> Run:
    """Fetch a published model by its name, and print its file. Without a name, list the models.

    Commands that translate take the name in place of a model file (docs/released_models.md). Models
    of fairseq are converted, which needs the extra `train` of the package.
    """
    command.add_argument("name", nargs="?", help="name of a published model")
    command.add_argument(
        "--mirror",
        action="append",
        default=[],
        metavar="PLACE",
        help="folder or base URL that is asked first, like the key mirrors of config.yaml",
    )
    return _get


def _get(arguments: Namespace) -> None:
    from convs2s.interop.published import get_model, published_models

    models = published_models()
    if arguments.name is None:
        for name, model in models.items():
            pair = f"{model.languages.source}-{model.languages.target}"
            print(f"{name}\t{pair}\t{model.licence}\t{model.url}")
        return
    check_known("get", "published model", arguments.name, models)
    print(get_model(models[arguments.name], arguments.mirror))


def add_import(command: ArgumentParser) -> None:
    """Convert a model that another toolkit has trained into a model file."""
    toolkits: Commands = {
        "fairseq": (_add_fairseq, "a convolutional model that fairseq trained")
    }
    add_commands(command, "TOOLKIT", toolkits)


def _add_fairseq(command: ArgumentParser) -> Run:
    """Convert an fconv model of fairseq into a model file. No code in the checkpoint is run."""
    add_file(
        command,
        "checkpoint",
        "fairseq checkpoint, such as model.pt or checkpoint_best.pt",
    )
    for side in ("source", "target"):
        add_file(
            command,
            f"--{side}-dictionary",
            f"dict.LANGUAGE.txt of the {side} language",
            required=True,
        )
    add_file(command, "--bpe-codes", "BPE codes of the model [whole words]")
    command.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="language codes [those in the checkpoint]",
    )
    command.add_argument(
        "--preparation",
        choices=PREPARATIONS,
        default=PREPARATION,
        help=f"preparation that splits raw text into words, before BPE [{PREPARATION}]",
    )
    add_file(command, "--output", "model file to write", required=True)
    return _import_fairseq


def _import_fairseq(arguments: Namespace) -> None:
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


def add_card(command: ArgumentParser) -> Run:
    """Print the model card of a model file, in Markdown.

    The card states the training data with checksums, the recipe, the seed, the languages, and the
    scores in the folder of the model file.
    """
    add_file(command, "model", "model file")
    return _card


def _card(arguments: Namespace) -> None:
    from convs2s.publish.card import model_card

    print(model_card(arguments.model), end="")


def add_export(command: ArgumentParser) -> None:
    """Write a model in the format of another program."""
    formats: Commands = {
        "hub": (_add_hub, "a folder for the Hugging Face Hub"),
        "onnx": (_add_onnx, "graphs for ONNX Runtime"),
    }
    add_commands(command, "FORMAT", formats)


def _add_hub(command: ArgumentParser) -> Run:
    """Write a folder for the Hugging Face Hub.

    The folder has the model file, its vocabularies and BPE codes, its configuration, and a model
    card with the scores that are beside the model file.
    """
    command.add_argument(
        "--license",
        default="unknown",
        help="license of the model, in the Hub's spelling, such as mit or cc-by-4.0 [unknown]",
    )
    _add_model_and_folder(command)
    return _export_hub


def _export_hub(arguments: Namespace) -> None:
    from convs2s.publish.hub import export_hub

    check_parent(arguments.folder)
    export_hub(arguments.model, arguments.folder, arguments.license)


def _add_onnx(command: ArgumentParser) -> Run:
    """Write a ConvS2S model as ONNX graphs (the encoder, one decoder step, the output layer).

    The folder also has the model's vocabularies and BPE codes, and a short program that translates
    with the graphs (docs/publishing.md).
    """
    _add_model_and_folder(command)
    return _export_onnx


def _export_onnx(arguments: Namespace) -> None:
    from convs2s.publish.hub import export_onnx

    check_parent(arguments.folder)
    export_onnx(arguments.model, arguments.folder)


def _add_model_and_folder(command: ArgumentParser) -> None:
    add_file(command, "model", "model file")
    add_file(command, "folder", "folder to create")


def add_pull(command: ArgumentParser) -> Run:
    """Download a model from the Hugging Face Hub into a new folder and check it.

    This needs the extra `hub` of the package.
    """
    command.add_argument("repository", help="repository on the Hub, USER/NAME")
    add_file(command, "folder", "folder to create [NAME]", nargs="?")
    command.add_argument("--revision", help="commit, tag or branch [the newest commit]")
    return _pull


def _pull(arguments: Namespace) -> None:
    from convs2s.publish.hub import pull

    name = arguments.repository.rstrip("/").rpartition("/")[2]
    folder = arguments.folder or Path(name)
    check_parent(folder)
    pull(arguments.repository, folder, arguments.revision)
    print(folder / "model.safetensors")


def add_push(command: ArgumentParser) -> Run:
    """Upload a folder of `convs2s export hub` to the Hugging Face Hub, as one commit.

    This needs the extra `hub` of the package.
    """
    add_file(command, "folder", "folder to upload")
    command.add_argument("repository", help="existing repository on the Hub, USER/NAME")
    return _push


def _push(arguments: Namespace) -> None:
    from convs2s.publish.hub import push

    print(push(arguments.folder, arguments.repository))
