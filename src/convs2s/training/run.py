"""From a prepared task to a model file: what ``convs2s train`` does."""

import os
from contextlib import nullcontext
from datetime import datetime
from functools import partial

import torch

from convs2s.data.vocabulary import Vocabulary
from convs2s.devices import (
    check_recipe,
    keep_freed_memory,
    pick_device,
    return_freed_memory,
    worker_device,
)
from convs2s.errors import UserError
from convs2s.files.atomic import size_of
from convs2s.files.interrupts import handling, interrupt
from convs2s.files.text import read_json, write_json
from convs2s.models.build import build_network
from convs2s.models.kernels import matmul
from convs2s.models.kernels.choice import fastest_kernel, products_of
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.network import Network
from convs2s.training.data import TrainingData, read_shortlist
from convs2s.training.finished import export, megabytes
from convs2s.training.heartbeat import HEARTBEATS, beating
from convs2s.training.history import Validation
from convs2s.training.identity import TrainingJob, identity
from convs2s.training.interruption import Interruption, signals_to_handle
from convs2s.training.log import log, speaking_as
from convs2s.training.progress import EVENTS, Watch
from convs2s.training.scheduler import end_of_job
from convs2s.training.start import begin
from convs2s.training.state_folder import STATE, StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from convs2s.training.workers import Workers, is_worker, joined, worker_count


def train(job: TrainingJob) -> None:
    """Train, or resume where an earlier process was killed, and write the model file.

    A finished training is exported again, never repeated. Several workers train together.

    Raises:
        UnfinishedError: Training stopped early, because of the time limit or a signal.
        UserError: The input is bad, or training diverged.
    """
    # Updates note a signal instead. Outside of them there is nothing to save: it ends at once.
    signals = handling(signals_to_handle(), interrupt)
    with speaking_as(job.label, quiet=job.quiet), beating(os.environ.get(HEARTBEATS)), signals:
        _train(job)


def _train(job: TrainingJob) -> None:
    launcher = os.getppid() if is_worker() else None
    stop = Interruption(job.time_limit, launcher, end_of_job())  # the clock starts here
    device = worker_device(pick_device(job.device, worker_count()))
    check_recipe(job.recipe, device)
    if device == "cpu":
        keep_freed_memory()
    torch.set_num_threads(job.threads)
    data = TrainingData.read(job.folder)
    network = initial_network(job, data)
    first_epoch = begin(job, data, network)
    known = identity(job, data.checksums)
    folder = StateFolder(job.output.parent / STATE, known, job.states)
    with joined(device) as workers, folder.locked() if workers.is_first else nullcontext():
        if workers.is_first:
            data.check_checksums()
            log(place_line(job, device, workers.count))
        workers.wait()  # for the lock and the checksums
        choose_kernel(job, network, folder, device, workers)
        bleu = None
        if job.recipe.best_by:
            from convs2s.training.validation_bleu import validation_bleu  # loads sacrebleu

            bleu = partial(validation_bleu, data, workers)
        updater = Updater(
            network,
            job.recipe,
            seed=job.seed,
            device=device,
            shortlist=read_shortlist(job.architecture, job.candidates, data),
            workers=workers,
        )
        trainer = Trainer(
            updater,
            data.stores,
            folder,
            stop=stop,
            watch=watch_of(job, folder) if workers.is_first else None,
            first_epoch=first_epoch,
            bleu=bleu,
        )
        return_freed_memory()  # of how it was made: on a GPU it has left all of this memory
        if workers.is_first:
            for line in folder.differences():  # states of other trainings are left alone
                log(f"{line}: not loaded")
            if trainer.state.updates:
                log(f"resuming in epoch {trainer.state.epoch} from {folder.last}")
        with handling(signals_to_handle(), stop.note):
            trainer.run()
        folder.progress.update(phase="exporting")
        validation = trainer.result()
        if workers.is_first:
            log_end(trainer, validation)
            export(job, data, trainer, validation)
            trainer.drop_unneeded()
            log(
                f"{megabytes(size_of(folder.path))} of states are needed to export this model "
                f"again, for nothing else: convs2s remove-states {folder.path.parent.parent} --yes"
            )
            folder.progress.update(phase="finished", why=trainer.state.schedule.stop_reason)


def initial_network(job: TrainingJob, data: TrainingData) -> Network:
    """Return the network as the seed makes it; for errors see ``TrainingData.check_lengths``."""
    torch.manual_seed(job.seed)
    source_types = len(Vocabulary(data.types["source"]))
    target_types = len(Vocabulary(data.types["target"]))
    network = build_network(job.architecture, source_types, target_types)
    data.check_lengths(network.positions)
    return network


def choose_kernel(
    job: TrainingJob, network: Network, folder: StateFolder, device: str, workers: Workers
) -> None:
    """Have this process compute products as the training's first worker says.

    Kernels round differently, so a training keeps the one that it began with, wherever it resumes.

    Raises:
        UserError: This machine does not have the kernel.
    """
    kernels = matmul.kernels()
    number = 0
    # Elsewhere there is but one kernel, the first.
    has_choice = torch.device(device).type == "cpu" and job.recipe.precision == "fp32"
    if workers.is_first and has_choice:
        if not folder.kernels.is_file():
            write_json(folder.kernels, {"products": _new_kernel(job, network)})
        begun = read_json(folder.kernels)
        known = [{"products": kernel} for kernel in kernels]
        if begun not in known:
            raise UserError(
                f"{folder.kernels}: says {begun}, which this machine does not have: remove it to "
                "resume with another kernel, which rounds differently"
            )
        number = known.index(begun)
    matmul.use(kernels[workers.from_first(number)])


def _new_kernel(job: TrainingJob, network: Network) -> Kernel:
    """Return the kernel that a new training is to have: a stated one, or the fastest."""
    kernels = matmul.kernels()
    if job.products == "auto":
        try:
            return fastest_kernel(products_of(network))
        except UserError as error:
            log(f"{error}; products are computed by blas, unmeasured")
            return "blas"
    if job.products not in kernels:
        raise UserError(
            f"products: {job.products}: this machine has {', '.join(kernels)} alone: state one of "
            "these, or auto"
        )
    return job.products


def watch_of(job: TrainingJob, folder: StateFolder) -> Watch:
    """Return what others are to see of a training; for errors see ``Watch``."""
    events = folder.path / EVENTS if job.recipe.tensorboard else None
    # Beside the result of another training, which this one replaces at its end, no history grows.
    is_replacing = job.output.with_name("training.json").exists()
    history = None if is_replacing else job.output.with_name("history.jsonl")
    return Watch(folder.progress, history, events)


def place_line(job: TrainingJob, device: str, workers: int) -> str:
    """Return a training's first line: when, where, on what and how it computes."""
    number = os.environ.get("SLURM_JOB_ID")
    place = os.uname().nodename
    if number is not None:
        place += f", Slurm job {number}"
    computing = "the CPU"
    precision: str = job.recipe.precision
    backend = "gloo"
    if torch.device(device).type == "cuda":
        computing = torch.cuda.get_device_name(device)
        backend = "nccl"
        if precision == "fp32":
            precision += " (products in TF32)"
    count = f"{workers} workers by {backend}" if workers > 1 else "1 worker"
    return (
        f"{datetime.now():%Y-%m-%d %H:%M:%S}, process {os.getpid()} on {place}: "
        f"{count} on {computing}, {precision}"
    )


def log_end(trainer: Trainer, validation: Validation) -> None:
    """Log why training ended, and whether the network reads its source."""
    schedule = trainer.state.schedule
    recipe = trainer.recipe
    log(f"stopped: {schedule.stop_reason}")
    if schedule.best_epoch == trainer.state.epoch - 1:
        advice = f"more would help: lower training.schedule.minimum ({recipe.schedule.minimum:g})"
        maximum = recipe.maximum_epochs
        if maximum is not None and schedule.best_epoch >= maximum:
            advice = f"more epochs would help: raise training.maximum_epochs ({maximum:g})"
        log(f"the last epoch was the best one: {advice}")
    if validation.source_use is not None:
        log(str(validation.source_use))
