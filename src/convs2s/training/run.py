"""Train one model, from a prepared task to a model file: the work of ``convs2s train``."""

import os
from contextlib import ExitStack
from datetime import datetime
from itertools import product

import torch

from convs2s.config.model import Recipe
from convs2s.data.vocabulary import Vocabulary
from convs2s.devices import (
    check_precision,
    check_recipe,
    has_bf16,
    keep_freed_memory,
    pick_device,
    return_freed_memory,
    worker_device,
)
from convs2s.errors import UserError
from convs2s.files.atomic import size_of
from convs2s.files.interrupts import handling, interrupt
from convs2s.files.text import read_json, write_json
from convs2s.model_file import STATE, kept_file
from convs2s.models.build import build_network
from convs2s.models.kernels import matmul
from convs2s.models.kernels.choice import fastest_kernel, is_bf16_faster, products_of
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.network import Network
from convs2s.training.data import TrainingData, read_shortlist
from convs2s.training.finished import export, megabytes
from convs2s.training.heartbeat import HEARTBEATS, beating
from convs2s.training.history import Validation
from convs2s.training.identity import TrainingJob, identity
from convs2s.training.interruption import Interruption, signals_to_handle
from convs2s.training.log import log, speaking_as
from convs2s.training.longer import drop_shorter, take_over
from convs2s.training.progress import EVENTS, Watch
from convs2s.training.scheduler import end_of_job
from convs2s.training.start import begin
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from convs2s.training.workers import Workers, is_worker, joined, worker_count


def train(job: TrainingJob) -> None:
    """Train, or resume a training from its last state, and write the model file and its records.

    If the training has finished already, its model is only exported again from the state. If
    torchrun started this process, it trains together with the other workers.

    Raises:
        UnfinishedError: Training stopped early, because of the time limit or a signal.
        UserError: The input is bad, or training diverged.
        SystemExit: On the other workers, in place of an error that the first worker reports.
    """
    # Outside of the training loop there is nothing to save, so a signal ends the process at once.
    # ``Interruption.note`` handles signals during the loop.
    signals = handling(signals_to_handle(), interrupt)
    with (
        speaking_as(job.label, quiet=job.quiet),
        beating(os.environ.get(HEARTBEATS)),
        signals,
    ):
        _train(job)


def _train(job: TrainingJob) -> None:
    """Do the work of ``train``, inside of its log and its signal handlers."""
    launcher = os.getppid() if is_worker() else None
    stop = Interruption(job.time_limit, launcher, end_of_job())  # starts the clock
    device = worker_device(pick_device(job.device, worker_count()))
    check_recipe(job.recipe, device)
    if device == "cpu":
        keep_freed_memory()
    torch.set_num_threads(job.threads)
    # Without a limit, torch.compile starts a process for each CPU of the machine, up to 32.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(job.threads))
    data = TrainingData.read(job.folder)
    network = initial_network(job, data)
    first_epoch = begin(job, data, network)
    folder = StateFolder(
        job.output.parent / STATE, identity(job, data.checksums), job.states
    )
    with ExitStack() as resources:
        workers = resources.enter_context(joined(device, stop.seconds_left()))
        if workers.is_first:
            resources.enter_context(folder.locked())
            data.check_checksums()
            log(first_log_line(job, device, workers.count))
            for note in data.notes:
                log(f"warning: {note}")
            taken_over = take_over(folder, job.recipe)
            for other, line in folder.differences().items():
                if other != taken_over:
                    log(f"{line}: not loaded")
        # Wait until the first worker has the lock, has checked the stores and has the last state.
        workers.wait()
        updater = Updater(
            network,
            choose_arithmetic(job, network, folder, device, workers),
            seed=job.seed,
            device=device,
            shortlist=read_shortlist(job.architecture, job.candidates, data),
            workers=workers,
        )
        trainer = Trainer(
            updater,
            data,
            folder,
            stop=stop,
            watch=watch_of(job, folder, workers),
            first_epoch=first_epoch,
        )
        # The network was built in the CPU's memory. If it is on a GPU now, that memory is free.
        return_freed_memory()
        if workers.is_first:
            # Snakemake may have removed the model of an earlier training.
            kept = kept_file(job.output)
            is_removed = kept.exists() and not job.output.exists()
            if is_removed and not trainer.is_complete:
                log(
                    f"the model of the last training stays in {kept} until this one ends"
                )
            if trainer.state.updates:
                log(f"resuming in epoch {trainer.state.epoch} from {folder.last}")
            if trainer.state.micro_batch_tokens is not None:
                log(
                    f"micro-batches have at most {trainer.state.micro_batch_tokens} padded tokens, "
                    "because memory ran out before"
                )
        with handling(signals_to_handle(), stop.note):
            trainer.run()
        folder.progress.update(phase="exporting")
        validation = trainer.result()
        if workers.is_first:
            _finish(job, trainer, validation)


def _finish(
    job: TrainingJob,
    trainer: Trainer,
    validation: Validation,
) -> None:
    """Write the model and its records, and drop unneeded states; only the first worker does."""
    folder = trainer.folder
    log_end(trainer, validation)
    export(job, trainer, validation)
    trainer.drop_unneeded()
    drop_shorter(folder)
    run_folder = folder.path.parent.parent
    use = "only to export this model again"
    if trainer.can_be_longer:
        use = "to export this model again or go on with more epochs"
    log(
        f"{megabytes(size_of(folder.path))} of states are kept, {use}; "
        f"to remove them, run `convs2s remove-states {run_folder} --yes`"
    )
    folder.progress.update(phase="finished", why=trainer.state.schedule.stop_reason)


def initial_network(job: TrainingJob, data: TrainingData) -> Network:
    """Build the network, with its weights initialized from the seed.

    Raises:
        UserError: The data does not fit the network; see ``TrainingData.check_lengths``.
    """
    torch.manual_seed(job.seed)
    source_types = len(Vocabulary(data.types["source"]))
    target_types = len(Vocabulary(data.types["target"]))
    network = build_network(job.architecture, source_types, target_types)
    data.check_lengths(network.positions)
    return network


def choose_arithmetic(
    job: TrainingJob,
    network: Network,
    folder: StateFolder,
    device: str,
    workers: Workers,
) -> Recipe:
    """Choose the kernel for matrix products in this process, and the precision if it is ``auto``.

    Kernels and precisions round differently. So the first worker chooses when the training starts,
    and writes its choice to ``kernels.json`` in the folder of states. All workers, and a training
    that is resumed, use this choice. There are several kernels only for fp32 on a CPU. Every worker
    must call this function.

    Returns:
        The recipe with the chosen precision.

    Raises:
        UserError: This machine does not have the kernel or precision that the training started
            with, or the kernel that the job asks for.
    """
    precision = job.recipe.precision
    is_auto = precision == "auto"
    precisions = ["fp32", "bf16"] if is_auto else [precision]
    choices = list(product(matmul.kernels(), precisions))
    # Index into ``choices``, which the first worker tells the others. 0 if nothing is to choose.
    number = 0
    is_on_cpu = torch.device(device).type == "cpu"
    has_choice = is_auto or (is_on_cpu and precision == "fp32")
    if has_choice and workers.is_first:
        records = []
        for kernel, name in choices:
            record: dict[str, str] = {"products": kernel}
            if is_auto:
                record["precision"] = name
            records.append(record)
        if not folder.kernels.is_file():
            kernel = _new_kernel(job, network) if is_on_cpu else "blas"
            chosen = faster_precision(network, device) if is_auto else precision
            write_json(folder.kernels, records[choices.index((kernel, chosen))])
        recorded = read_json(folder.kernels)
        if recorded not in records:
            raise UserError(
                f"{folder.kernels}: says {recorded}, which this machine does not have; remove the "
                "file to resume with another choice, which rounds differently"
            )
        number = records.index(recorded)
    kernel, chosen = choices[workers.from_first(number)]
    matmul.use(kernel)
    if is_auto and workers.is_first:
        log(f"precision auto is {chosen} here")
    check_precision(chosen, device)
    return job.recipe.model_copy(update={"precision": chosen})


def faster_precision(network: Network, device: str) -> str:
    """Return ``bf16`` if it is faster for training a network on this device, else ``fp32``.

    On a GPU that has bf16, bf16 is always faster. On a CPU both are measured (`is_bf16_faster`).
    """
    try:
        if torch.device(device).type == "cuda":
            is_faster = has_bf16()
        else:
            is_faster = is_bf16_faster(products_of(network))
    except UserError as error:
        log(f"{error}; the precision is fp32, without a measurement")
        is_faster = False
    return "bf16" if is_faster else "fp32"


def _new_kernel(job: TrainingJob, network: Network) -> Kernel:
    """Return the kernel that the job names, or for ``auto`` the fastest one of this machine.

    Raises:
        UserError: This machine does not have the kernel that the job names.
    """
    kernels = matmul.kernels()
    if job.products == "auto":
        try:
            return fastest_kernel(products_of(network))
        except UserError as error:
            log(f"{error}; products are computed by blas, without a measurement")
            return "blas"
    if job.products not in kernels:
        raise UserError(
            f"products {job.products}: this machine has only {', '.join(kernels)}; set products to "
            "one of these, or to auto"
        )
    return job.products


def watch_of(
    job: TrainingJob,
    folder: StateFolder,
    workers: Workers,
) -> Watch:
    """Return the writer of the files that show a training's progress, for this worker."""
    watch = Watch(folder.progress, silent=not workers.is_first)
    if workers.is_first and job.recipe.tensorboard:
        watch.events = folder.path / EVENTS
    # The result of an earlier training stays as it is, with its history, until this training ends
    # and replaces the whole result.
    is_replacing = job.output.with_name("training.json").exists()
    if workers.is_first and not is_replacing:
        watch.history = job.output.with_name("history.jsonl")
    return watch


def first_log_line(
    job: TrainingJob,
    device: str,
    workers: int,
) -> str:
    """Return the first line of a training's log: time, process, host, device and precision."""
    slurm_job = os.environ.get("SLURM_JOB_ID")
    place = os.uname().nodename
    if slurm_job is not None:
        place += f", Slurm job {slurm_job}"
    device_name = "the CPU"
    precision: str = job.recipe.precision
    backend = "gloo"
    if torch.device(device).type == "cuda":
        device_name = torch.cuda.get_device_name(device)
        backend = "nccl"
        if precision == "fp32":
            precision += " (products in TF32)"
    count = f"{workers} workers by {backend}" if workers > 1 else "1 worker"
    return (
        f"{datetime.now():%Y-%m-%d %H:%M:%S}, process {os.getpid()} on {place}: "
        f"{count} on {device_name}, {precision}"
    )


def log_end(trainer: Trainer, validation: Validation) -> None:
    """Log why the training ended, whether to train longer, and how much the source is used."""
    schedule = trainer.state.schedule
    recipe = trainer.recipe
    log(f"stopped: {schedule.stop_reason}")
    if schedule.best_epoch == trainer.state.epoch - 1:
        advice = f"lower training.schedule.minimum ({recipe.schedule.minimum:g})"
        if trainer.state.ended_by_maximum(recipe):
            advice = f"raise training.maximum_epochs ({recipe.maximum_epochs:g})"
        effect = "trains again from the start"
        if trainer.can_be_longer:
            effect = "goes on from the last state"
        log(
            f"the last epoch was the best one, so more epochs would help; {advice} in "
            "config.local.yaml, or in config/models.d/NAME.yaml for a model of your own, which "
            f"{effect}; this model stays in state/ until then"
        )
    if validation.source_use is not None:
        log(str(validation.source_use))
