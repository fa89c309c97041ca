"""``convs2s train``, ``status``, ``remove-states``, ``kernels``: trainings and their machines."""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from convs2s.cli.options import add_choice, add_threads
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import is_written_in_place
from convs2s.files.checksums import check_noted
from convs2s.pipeline.living import RUN, living_job
from convs2s.pipeline.tries import noted_try

WATCH_SECONDS = 2.0  # between two looks of ``status --watch``
TYPES = 10_000  # of each side's vocabulary, where ``kernels`` measures: only speed matters


def add_train(command: argparse.ArgumentParser) -> None:
    """Add the options of ``train``."""
    command.description = "Train a model, or resume a training that was stopped."
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
    """Add the options of ``train`` that change no result."""
    add_choice(command, "device", "config.yaml's; with --settings: auto")
    command.add_argument(
        "--threads",
        type=int,
        help="CPU threads of each worker [config.yaml's cores, or the model's; with --settings: 4]",
    )
    add_choice(command, "products", "config.yaml's; with --settings: auto")
    command.add_argument(
        "--cpus",
        type=int,
        metavar="NUMBER",
        help="CPUs of each machine that its workers share, in place of --threads",
    )
    command.add_argument(
        "--states",
        metavar="PLACE",
        help="a folder or URL, such as s3://BUCKET/states, where the states are kept as well: for "
        "machines that share no disk [config.yaml's states]",
    )
    command.add_argument(
        "--checkpoint-minutes",
        type=float,
        metavar="MINUTES",
        help="minutes between states [training.checkpoint_minutes]",
    )
    command.add_argument(
        "--tensorboard",
        action="store_true",
        help="write event files for TensorBoard [training.tensorboard]",
    )
    command.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes that share each batch, one per GPU where there are any [1]; 0: as many as "
        "GPUs that a scheduler has granted on this machine, else 1; refused where fewer were "
        "granted; of more, so many are used",
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
        help="minutes that a scheduler grants the job that this runs in: save and end with exit "
        "code 75 shortly before they have passed; without a scheduler's job around it, nothing; "
        "where Slurm says when its job ends, that counts",
    )
    command.add_argument(
        "--requeue",
        action="store_true",
        help="where training stops before its end in a Slurm job of its own, have Slurm queue that "
        "job again instead of ending with exit code 75",
    )


def _train(arguments: argparse.Namespace) -> None:
    from convs2s.training.workers import is_worker

    noted = []
    if RUN in os.environ and not is_worker():
        noted.append(str(arguments.output))
    with living_job(), noted_try(noted):
        try:
            _start_training(arguments)
        except KeyboardInterrupt:
            raise UnfinishedError(
                "training is not finished: interrupted while it made no updates; what was saved "
                "before is kept: rerun the same command to resume"
            ) from None


def _start_training(arguments: argparse.Namespace) -> None:
    from convs2s.config.file_reference import Download
    from convs2s.config.identity import read_training_settings
    from convs2s.config.load import load
    from convs2s.config.options import Options
    from convs2s.training.identity import TrainingJob
    from convs2s.training.launch import granted_workers, launch
    from convs2s.training.scheduler import is_in_a_job
    from convs2s.training.start import fetched_start

    _check_files(arguments)
    if arguments.settings:
        options = Options()
        downloads: Mapping[str, Download] = {}
        architecture, recipe = read_training_settings(arguments.settings)
        # The workflow puts a model's settings into a folder of its name.
        model_name = arguments.settings.absolute().parent.name
    else:
        configuration = load(Path.cwd())
        options = configuration.options
        downloads = configuration.downloads
        model_name = arguments.model
        architecture = configuration.model(model_name).architecture
        recipe = configuration.model(model_name).training
    if arguments.start and recipe.start is None:
        raise UserError(
            f"--start {arguments.start}: says where the file of training.start.from lies, and the "
            f"recipe of '{model_name}' has no training.start (docs/fine_tuning.md)"
        )
    minutes = arguments.checkpoint_minutes or recipe.checkpoint_minutes
    tensorboard = arguments.tensorboard or recipe.tensorboard
    changes = {"checkpoint_minutes": minutes, "tensorboard": tensorboard}
    workers = arguments.workers or granted_workers()
    threads = arguments.threads or options.cores or recipe.threads
    if arguments.cpus:
        threads = max(1, int(arguments.cpus) // workers)
    job = TrainingJob(
        folder=arguments.folder,
        architecture=architecture,
        recipe=recipe.model_copy(update=changes),
        seed=arguments.seed,
        output=arguments.output,
        dictionary=arguments.dictionary,
        device=arguments.device or options.device,
        threads=threads,
        candidates=arguments.candidates,
        truecasers=arguments.truecasers,
        states=arguments.states or options.states,
        start=arguments.start or fetched_start(recipe, arguments.output, downloads),
        time_limit=arguments.time_limit if is_in_a_job() else None,
        requeues=arguments.requeue,
        products=arguments.products or options.products,
        quiet=arguments.quiet,
        label=f"{arguments.folder.absolute().name}/{model_name}/seed{arguments.seed}",
    )
    launch(job, arguments.nodes, workers, arguments.command)


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse a place where no model can lie, and tables that are missing or damaged."""
    if is_written_in_place(arguments.output):
        raise UserError(
            f"{arguments.output}: is no plain file: a training keeps its states beside its model: "
            "name a file in a folder"
        )
    tables = [arguments.settings, arguments.dictionary, arguments.candidates]
    tables += arguments.truecasers or []
    given = [path for path in tables if path]
    for path in given:  # some of them are read at the end of the training alone
        if not path.is_file():
            raise UserError(f"{path}: no such file")
    check_noted(given)


def add_status(command: argparse.ArgumentParser) -> None:
    """Add the options of ``status``."""
    command.description = (
        "Show how each training and job of a results folder is: running, locked, crashed with the "
        "last lines of its log, stopped and why, finished. It reads files alone, so the jobs may "
        "run on other machines that share them."
    )
    command.add_argument(
        "results",
        nargs="?",
        type=Path,
        default=Path("results"),
        help="folder of the results, or of a task or run in it [results]",
    )
    forms = command.add_mutually_exclusive_group()
    forms.add_argument("--watch", action="store_true", help="look again every two seconds")
    forms.add_argument("--json", action="store_true", help="one JSON object, times in seconds")
    command.set_defaults(run=_status)


def _status(arguments: argparse.Namespace) -> None:
    from convs2s.pipeline.status import status
    from convs2s.pipeline.status_view import console, view

    if arguments.json:
        json.dump(asdict(status(arguments.results)), sys.stdout, ensure_ascii=False, indent=2)
        print()
        return
    out = console()
    if not arguments.watch:
        out.print(view(status(arguments.results), width=out.width))
        return
    from rich.live import Live

    if not out.is_terminal:
        raise UserError("--watch: the output is no terminal: leave it out, or use --json")
    with (
        suppress(KeyboardInterrupt),  # Ctrl-C is how one leaves it
        Live(console=out, auto_refresh=False, screen=True) as live,
    ):
        while True:
            shown = view(status(arguments.results), rows=out.height, width=out.width)
            live.update(shown, refresh=True)
            time.sleep(WATCH_SECONDS)


def add_remove_states(command: argparse.ArgumentParser) -> None:
    """Add the options of ``remove-states``."""
    command.description = (
        "List the states of trainings that have ended, below a folder, or remove them. Models, "
        "records and scores stay, as do states of trainings that run or were stopped. What "
        "would only be exported again (docs/operations.md) is then trained again."
    )
    command.add_argument("folder", type=Path, help="results, those of a task, or a run")
    command.add_argument("--yes", action="store_true", help="remove them [list them]")
    command.set_defaults(run=_remove_states)


def _remove_states(arguments: argparse.Namespace) -> None:
    from convs2s.training.finished import finished_states, megabytes, remove_state

    states = finished_states(arguments.folder)
    for path, size in states.items():
        if arguments.yes:
            remove_state(path)
        print(f"{megabytes(size):>12}  {path}")
    total = megabytes(sum(states.values()))
    done = "may go: --yes removes them"
    if arguments.yes or not states:
        done = "removed"
    print(f"{total:>12}  of {len(states)} trainings that have ended: {done}")


def add_kernels(command: argparse.ArgumentParser) -> None:
    """Add the options of ``kernels``."""
    command.description = (
        "Measure the matrix products of a model's training by each kernel, in GFLOP/s. The kernel "
        "that a training takes is the one of config.yaml's products; with auto, the faster one "
        "when it was first measured here."
    )
    command.add_argument("--model", default="small", help="a name of config/models.yaml [small]")
    add_threads(command)
    command.set_defaults(run=_kernels)


def _kernels(arguments: argparse.Namespace) -> None:
    import torch

    from convs2s.config.load import load
    from convs2s.models.build import build_network
    from convs2s.models.kernels import choice

    torch.set_num_threads(arguments.threads)
    model = load(Path.cwd()).model(arguments.model)
    products = choice.products_of(build_network(model.architecture, TYPES, TYPES))
    if not products:
        raise UserError(f"--model {arguments.model}: has no maps of this package to measure")
    chosen = choice.fastest_kernel(products)
    print(f"{'training in fp32':24} GFLOP/s")
    for kernel, rate in choice.training_rates(products).items():
        mark = "   chosen" if kernel == chosen else ""
        print(f"{kernel:24} {rate / 1e9:7.0f}{mark}")
