"""From a prepared task to a model file: what ``convs2s train`` does."""

import os
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from convs2s.data.vocabulary import Vocabulary
from convs2s.devices import pick_device, worker_device
from convs2s.models.build import build_network
from convs2s.models.network import Network
from convs2s.training.data import TrainingData
from convs2s.training.export import export
from convs2s.training.finished_states import megabytes, size_of
from convs2s.training.interruption import Interruption, end_of_job
from convs2s.training.job import TrainingJob
from convs2s.training.kernel_choice import choose_kernel
from convs2s.training.log import log, speaking_as
from convs2s.training.memory import keep_freed_memory
from convs2s.training.shortlisting import read_shortlist
from convs2s.training.start import begin, data_identity, start_identity
from convs2s.training.state_folder import STATE, StateFolder
from convs2s.training.tensorboard import EVENTS, EventFile
from convs2s.training.trainer import Trainer, TrainingResult
from convs2s.training.version import TRAINING_VERSION, recipe_identity
from convs2s.training.watch import Watch
from convs2s.training.workers import is_worker, joined


def train(job: TrainingJob) -> None:
    """Train, or go on from where an earlier process was killed, and write the model file.

    A finished training is exported again, never repeated. Several workers train together.

    Raises:
        UserError: bad input, or training diverged.
        UnfinishedError: training stopped early, because of the time limit or a signal.
    """
    with speaking_as(job.label, quiet=job.quiet):
        _train(job)


def _train(job: TrainingJob) -> None:
    stop = _interruption(job)
    keep_freed_memory()
    torch.set_num_threads(job.threads)
    data = TrainingData.read(job.folder)
    network, first_epoch = beginning(job, data)
    folder = StateFolder(job.output.parent / STATE, identity(job, data))
    device = worker_device(pick_device(job.device), os.environ)
    with joined(device) as workers, folder.locked() if workers.is_first else nullcontext():
        data.check_checksums(workers.is_first)
        workers.wait()  # for the lock and the checksums
        choose_kernel(job, network, folder, device, workers)
        trainer = Trainer(
            network,
            job.recipe,
            data.stores,
            folder,
            seed=job.seed,
            device=device,
            stop=stop,
            workers=workers,
            shortlist=read_shortlist(job.architecture, job.candidates, data),
            watch=watch_of(job, folder) if workers.is_first else None,
            first_epoch=first_epoch,
        )
        if workers.is_first:
            say_where(trainer)
        with stop.listening():
            trainer.run()
        result = trainer.result()
        if workers.is_first:
            say_end(trainer, result)
            export(job, data, trainer, result)
            folder.progress.update(phase="finished", why=trainer.state.schedule.stop_reason)


def watch_of(job: TrainingJob, folder: StateFolder) -> Watch:
    """Return what others are to see of a training.

    Raises:
        UserError: TensorBoard's files are asked for, but its package is not installed.
    """
    events = EventFile(folder.path / EVENTS) if job.recipe.tensorboard else None
    return Watch(folder.progress, live_history(job.output), events)


def live_history(output: Path) -> Path | None:
    """Return where a training's history grows while it runs.

    Beside the result of another training, which this one replaces at its end, it does not.
    """
    beside = output.with_name("training.json").exists()
    return None if beside else output.with_name("history.jsonl")


def _interruption(job: TrainingJob) -> Interruption:
    launcher = os.getppid() if is_worker() else None
    return Interruption(job.time_limit, launcher, end_of_job(os.environ))


def beginning(job: TrainingJob, data: TrainingData) -> tuple[Network, int]:
    """Return the network that a training begins with, and its first epoch, from 1.

    Raises:
        UserError: a pair is longer than the network has positions, or the model does not fit that
            the training starts from.
    """
    network = initial_network(job, data)
    return network, begin(job, data, network)


def initial_network(job: TrainingJob, data: TrainingData) -> Network:
    """Return the network as the seed makes it.

    Raises:
        UserError: a pair is longer than the network has positions.
    """
    torch.manual_seed(job.seed)
    sizes = (len(Vocabulary(data.types[side])) for side in ("source", "target"))
    network = build_network(job.architecture, *sizes)
    data.check_lengths(network.positions)
    return network


def say_where(trainer: Trainer) -> None:
    """Say which states of other trainings are left alone, and where this one goes on and why."""
    job = os.environ.get("SLURM_JOB_ID")
    place = f"{os.uname().nodename}{'' if job is None else f', Slurm job {job}'}"
    log(f"{datetime.now():%Y-%m-%d %H:%M:%S}, process {os.getpid()} on {place}")
    for line in trainer.folder.differences():
        log(f"{line}: not loaded")
    if trainer.state.updates:
        log(f"going on in epoch {trainer.state.epoch} from {trainer.folder.last}")


def say_end(trainer: Trainer, result: TrainingResult) -> None:
    """Say why training ended, whether the network reads its source, and what may go."""
    schedule = trainer.state.schedule
    log(f"stopped: {schedule.stop_reason}")
    if schedule.best_epoch == trainer.state.epoch - 1:
        log(f"the last epoch was the best one: {more_would_help(trainer)}")
    if result.source_use is not None:
        log(str(result.source_use))
    say_what_may_go(trainer.folder)


def more_would_help(trainer: Trainer) -> str:
    """Return what a training that was still improving at its end is to be given."""
    maximum, schedule = trainer.recipe.maximum_epochs, trainer.recipe.schedule
    if maximum is not None and trainer.state.schedule.best_epoch >= maximum:
        return f"more epochs would help: raise training.maximum_epochs ({maximum:g})"
    return f"more would help: lower training.schedule.minimum ({schedule.minimum:g})"


def say_what_may_go(folder: StateFolder) -> None:
    """Say what a training that has ended still takes on the disk, and how to be rid of it."""
    log(
        f"{megabytes(size_of(folder.path))} of states are needed to export this model again, for "
        f"nothing else: convs2s remove-states {folder.parent.parent} --yes"
    )


def identity(job: TrainingJob, data: TrainingData) -> dict[str, Any]:
    """Return everything that a training's result depends on but the machine."""
    return {
        **recipe_identity(job.architecture, job.recipe),
        **start_identity(job),
        "seed": job.seed,
        "data": data_identity(job, data),
        "version": TRAINING_VERSION,
        **({} if job.products == "auto" else {"products": job.products}),
    }
