"""The commands ``convs2s train``, ``status``, ``remove-states`` and ``kernels``."""

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from convs2s.cli.options import (
    Run,
    add_choice,
    add_file,
    add_flag,
    add_threads,
    read_configuration,
)
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import is_written_in_place
from convs2s.files.checksums import check_noted
from convs2s.files.interrupts import handling, interrupt
from convs2s.pipeline.living import RUN, living_job
from convs2s.pipeline.made import noted_origin
from convs2s.pipeline.tries import noted_try

WATCH_SECONDS = 2.0  # between two updates of ``status --watch``
# Number of types in each vocabulary of the network that ``kernels`` measures. The number hardly
# changes the measured speed, because the measurement cuts weight matrices that are large
# (`convs2s.models.kernels.choice`).
TYPES = 10_000


def add_train(command: ArgumentParser) -> Run:
    """Train a model, or resume a training that was stopped."""
    add_file(command, "folder", "folder of a prepared task, such as results/demo_en_fr")
    settings = command.add_mutually_exclusive_group(required=True)
    settings.add_argument(
        "--model", metavar="NAME", help="name of a model in config/models.yaml"
    )
    add_file(
        settings,
        "--settings",
        "JSON file with the settings of a model, instead of --model",
    )
    command.add_argument("--seed", type=int, default=1, help="random seed [1]")
    add_file(command, "--output", "model file to write", required=True)
    add_file(command, "--dictionary", "dictionary.tsv, to replace unknown words")
    add_file(command, "--candidates", "candidates.tsv for vocabulary selection")
    add_file(
        command,
        "--truecasers",
        "truecasers of both sides, if the training text is truecased",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
    )
    add_file(
        command,
        "--start",
        "local file of the model that training.start names [the path there, or a download of the "
        "URL there]",
        metavar="MODEL",
    )
    add_flag(
        command,
        "--quiet",
        "print errors only; state/train.log beside the model has all lines",
    )
    add_choice(command, "device", "device in config.yaml; with --settings: auto")
    command.add_argument(
        "--threads",
        type=int,
        help="CPU threads of each worker [cores in config.yaml, else training.threads of the "
        "model; with --settings: 4]",
    )
    add_choice(command, "products", "products in config.yaml; with --settings: auto")
    command.add_argument(
        "--cpus",
        type=int,
        metavar="NUMBER",
        help="CPUs of each machine, divided among its workers; replaces --threads",
    )
    _add_job_options(command)
    return _train


def _add_job_options(command: ArgumentParser) -> None:
    """Add the options of ``train`` about saved states, workers and the job of a scheduler."""
    command.add_argument(
        "--states",
        metavar="PLACE",
        help="folder or URL, such as s3://BUCKET/states, to copy the states to, so that a machine "
        "without a shared disk can resume [states in config.yaml]",
    )
    command.add_argument(
        "--checkpoint-minutes",
        type=float,
        metavar="MINUTES",
        help="minutes between two saved states [training.checkpoint_minutes]",
    )
    add_flag(
        command,
        "--tensorboard",
        "write event files for TensorBoard [training.tensorboard]",
    )
    command.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes on each machine that share each batch, one per GPU if there are GPUs [1]. "
        "0 means one per GPU that a scheduler has granted on this machine, or 1 without GPUs. "
        "Fewer GPUs than workers are an error; more GPUs than workers stay unused",
    )
    command.add_argument(
        "--nodes",
        type=int,
        default=1,
        metavar="NUMBER",
        help="machines of this Slurm job to train on, with --workers processes each [1]",
    )
    command.add_argument(
        "--time-limit",
        type=float,
        metavar="MINUTES",
        help="minutes that a scheduler grants the job in which this command runs. Training saves "
        "its state and ends with exit code 75 shortly before this time is over. If Slurm states "
        "when the job ends, that time is used instead. Outside of a scheduler's job the option has "
        "no effect",
    )
    add_flag(
        command,
        "--requeue",
        "if training stops before its end in a Slurm job that does nothing else, make Slurm "
        "queue the job again instead of ending with exit code 75",
    )


def _train(arguments: Namespace) -> None:
    with handling((signal.SIGTERM,), interrupt):
        try:
            _try_to_train(arguments)
        except KeyboardInterrupt:
            # RANK is the number that torchrun gives to this worker. It is read from the environment
            # because modules that know it import torch. That import may have been interrupted, and
            # torch cannot be imported twice.
            if os.environ.get("RANK", "0") != "0":
                # The first worker has received the same signal and reports it.
                sys.exit(UnfinishedError.exit_code)
            raise UnfinishedError(
                "training is not finished: interrupted while it made no updates; states saved "
                "before are kept: rerun the same command to resume"
            ) from None


def _try_to_train(arguments: Namespace) -> None:
    from convs2s.training.identity import TRAINING_VERSION
    from convs2s.training.launch import is_started_by_another

    # In a job of the workflow, this process notes that it tries to make the model. The nodes and
    # workers that it starts run the same command. They must not note a try, because all of them
    # would write to the same file.
    outputs = []
    if RUN in os.environ and not is_started_by_another():
        outputs.append(str(arguments.output))
    # The input `changed` of the rule train_model compares the same params.
    params = {"version": TRAINING_VERSION}
    start = [str(arguments.start)] if arguments.start else []
    with living_job(), noted_try(outputs), noted_origin(outputs, params, start):
        _start_training(arguments)


def _start_training(arguments: Namespace) -> None:
    from convs2s.config.file_reference import Download
    from convs2s.config.identity import read_training_settings
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
        # The workflow writes a model's settings to MODEL/settings.json.
        model_name = arguments.settings.absolute().parent.name
    else:
        configuration = read_configuration()
        configuration.check_whole([arguments.folder.absolute().name])
        options = configuration.options
        downloads = configuration.downloads
        model_name = arguments.model
        model = configuration.model(model_name)
        architecture = model.architecture
        recipe = model.training
    if arguments.start and recipe.start is None:
        raise UserError(
            f"--start {arguments.start}: is the local file of training.start.from, but the "
            f"recipe of '{model_name}' has no training.start (docs/fine_tuning.md)"
        )
    changes = {
        "checkpoint_minutes": arguments.checkpoint_minutes or recipe.checkpoint_minutes,
        "tensorboard": arguments.tensorboard or recipe.tensorboard,
    }
    # --workers 0 means as many as there are granted GPUs.
    workers = arguments.workers or granted_workers()
    threads = arguments.threads or options.cores or recipe.threads
    if arguments.cpus:
        threads = max(1, arguments.cpus // workers)
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


def _check_files(arguments: Namespace) -> None:
    """Check that a model can be written, and that the files to read exist and are not damaged.

    All files are checked now, because some are only read at the end of the training.

    Raises:
        UserError: A check fails.
    """
    if is_written_in_place(arguments.output):
        raise UserError(
            f"{arguments.output}: is not a plain file, beside which a training could keep its "
            "states: name a file in a folder"
        )
    optional_files = [arguments.settings, arguments.dictionary, arguments.candidates]
    optional_files += arguments.truecasers or []
    files = [path for path in optional_files if path]
    for path in files:
        if not path.is_file():
            raise UserError(f"{path}: no such file")
    check_noted(files)


def add_status(command: ArgumentParser) -> Run:
    """Show the condition of each training and job in a results folder.

    A training or job is running, locked, crashed (with the last lines of its log), stopped (with
    the reason), not started or finished. The command only reads files, so the jobs may run on other
    machines that share the folder.
    """
    add_file(
        command,
        "results",
        "folder of the results, of a task or of a run [results]",
        nargs="?",
        default=Path("results"),
    )
    forms = command.add_mutually_exclusive_group()
    add_flag(forms, "--watch", "update the view every two seconds")
    add_flag(forms, "--json", "print one JSON object, with times in seconds")
    return _status


def _status(arguments: Namespace) -> None:
    from convs2s.pipeline.status import status
    from convs2s.pipeline.status_view import console, view

    if arguments.json:
        json.dump(
            asdict(status(arguments.results)), sys.stdout, ensure_ascii=False, indent=2
        )
        print()
        return
    out = console()
    if not arguments.watch:
        out.print(view(status(arguments.results), width=out.width))
        return
    from rich.live import Live

    if not out.is_terminal:
        raise UserError(
            "--watch: the output is not a terminal: leave out --watch, or use --json"
        )
    with (
        suppress(KeyboardInterrupt),  # Ctrl-C is the way to leave the view
        Live(console=out, auto_refresh=False, screen=True) as live,
    ):
        while True:
            shown = view(status(arguments.results), rows=out.height, width=out.width)
            live.update(shown, refresh=True)
            time.sleep(WATCH_SECONDS)


def add_remove_states(command: ArgumentParser) -> Run:
    """List or remove the saved states of finished trainings in a folder.

    Models, records and scores stay, and so do the states of trainings that run or were stopped.
    Without its state, a model is trained from the start if it is to be exported again or trained
    for more epochs (docs/operations.md).
    """
    add_file(command, "folder", "folder of the results, of a task or of a run")
    add_flag(command, "--yes", "remove the states [list them only]")
    return _remove_states


def _remove_states(arguments: Namespace) -> None:
    from convs2s.training.finished import finished_states, megabytes, remove_state

    states = finished_states(arguments.folder)
    for path, size in states.items():
        if arguments.yes:
            remove_state(path)
        print(f"{megabytes(size):>12}  {path}")
    total = megabytes(sum(states.values()))
    outcome = "may go: --yes removes them"
    if arguments.yes or not states:
        outcome = "removed"
    print(f"{total:>12}  of {len(states)} trainings that have ended: {outcome}")


def add_kernels(command: ArgumentParser) -> Run:
    """Measure each kernel's speed in the matrix products of a model's training, in GFLOP/s.

    A training uses the kernel that the key products in config.yaml names. With auto, the training
    uses the kernel that was faster when kernels were first measured on this machine.
    """
    command.add_argument(
        "--model",
        default="small",
        metavar="NAME",
        help="model in config/models.yaml [small]",
    )
    add_threads(command)
    return _kernels


def _kernels(arguments: Namespace) -> None:
    import torch

    from convs2s.models.build import build_network
    from convs2s.models.kernels import choice

    torch.set_num_threads(arguments.threads)
    model = read_configuration().model(arguments.model)
    products = choice.products_of(build_network(model.architecture, TYPES, TYPES))
    if not products:
        raise UserError(
            f"--model {arguments.model}: has no layers of this package whose matrix products could "
            "be measured"
        )
    chosen = choice.fastest_kernel(products)
    print(f"{'training':24} GFLOP/s")
    for name, rate in choice.training_rates(products, with_bf16=True).items():
        mark = "   chosen for fp32" if name == chosen else ""
        print(f"{name:24} {rate / 1e9:7.0f}{mark}")
