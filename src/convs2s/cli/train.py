"""``convs2s train``: a model from a prepared task."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.common import add_choice
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import is_written_in_place
from convs2s.files.checksums import check_noted

if TYPE_CHECKING:
    from convs2s.config.file_reference import Download
    from convs2s.training.identity import TrainingJob


def add_train(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = "Train a model, or go on where an earlier command was stopped."
    command.add_argument("folder", type=Path, help="a prepared task, such as results/demo_en_fr")
    settings = command.add_mutually_exclusive_group(required=True)
    settings.add_argument("--model", help="a name of config/models.yaml")
    settings.add_argument("--settings", type=Path, help="a JSON file with such an entry's settings")
    command.add_argument("--seed", type=int, default=1, help="random seed [1]")
    command.add_argument("--output", type=Path, required=True, help="the model file to write")
    command.add_argument("--dictionary", type=Path, help="dictionary.tsv for unknown words")
    command.add_argument("--candidates", type=Path, help="candidates.tsv for vocabulary selection")
    command.add_argument(
        "--truecasers",
        nargs=2,
        type=Path,
        metavar=("SOURCE", "TARGET"),
        help="truecasers of a truecased text",
    )
    command.add_argument(
        "--start",
        type=Path,
        metavar="MODEL",
        help="where the model lies that training.start names [its path, or fetched from its URL]",
    )
    command.add_argument(
        "--quiet", action="store_true", help="show errors alone; state/train.log has the rest"
    )
    _add_machine(command)
    command.set_defaults(run=_train)


def _add_machine(command: argparse.ArgumentParser) -> None:
    """Add what is granted to a training."""
    add_choice(command, "device", "config.yaml's")
    command.add_argument(
        "--threads",
        type=int,
        help="CPU threads of each worker [config.yaml's cores, or the model's training.threads]",
    )
    add_choice(command, "products", "config.yaml's")
    command.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes that share each batch, one per GPU where there are any [1]; 0 is 1",
    )
    command.add_argument(
        "--nodes",
        type=int,
        default=1,
        help="machines with so many workers each, all of this Slurm job [1]",
    )
    command.add_argument(
        "--time-limit",
        type=float,
        metavar="MINUTES",
        help="save and end with exit code 75 shortly before so many minutes have passed",
    )


def _train(arguments: argparse.Namespace) -> None:
    from convs2s.training.launch import launch

    if is_written_in_place(arguments.output):
        raise UserError(
            f"{arguments.output}: is no plain file: a training keeps its states beside its model: "
            "name a file in a folder"
        )
    tables = arguments.dictionary, arguments.candidates, *(arguments.truecasers or ())
    check_noted(path for path in (arguments.settings, *tables) if path)
    job = _job(arguments)
    try:
        launch(job, arguments.nodes, max(1, arguments.workers), arguments.command)
    except KeyboardInterrupt:
        raise UnfinishedError(
            "training is not finished: interrupted while it made no updates; what was saved before "
            "is kept: run the same command again to go on"
        ) from None


def _job(arguments: argparse.Namespace) -> "TrainingJob":
    from convs2s.config.load import load
    from convs2s.config.model import read_training_settings
    from convs2s.config.options import Options
    from convs2s.training.identity import TrainingJob
    from convs2s.training.start import fetched_start

    downloads: Mapping[str, Download] = {}
    options = Options()
    if arguments.settings:
        architecture, recipe = read_training_settings(arguments.settings)
    else:
        configuration = load(Path.cwd())
        model, downloads = configuration.model(arguments.model), configuration.downloads
        options = configuration.options
        architecture, recipe = model.architecture, model.training
    return TrainingJob(
        folder=arguments.folder,
        architecture=architecture,
        recipe=recipe,
        seed=arguments.seed,
        output=arguments.output,
        dictionary=arguments.dictionary,
        device=arguments.device or options.device,
        threads=arguments.threads or options.cores or recipe.threads,
        candidates=arguments.candidates,
        truecasers=arguments.truecasers,
        start=arguments.start or fetched_start(recipe, arguments.output, downloads),
        time_limit=arguments.time_limit,
        products=arguments.products or options.products,
        quiet=arguments.quiet,
        label=f"{arguments.folder.name}/{_model_name(arguments)}/seed{arguments.seed}",
    )


def _model_name(arguments: argparse.Namespace) -> str:
    """Return a model's name; the workflow puts its settings into a folder of that name."""
    return str(arguments.model or arguments.settings.absolute().parent.name)
