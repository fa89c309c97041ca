"""From a prepared task to a model file: what ``convs2s train`` does."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from convs2s.data.vocabulary import Vocabulary
from convs2s.devices import pick_device, worker_device
from convs2s.files import atomic_text, sha256
from convs2s.manifest import manifest
from convs2s.model_file import ModelDescription, save_model
from convs2s.models.build import build_network
from convs2s.text.lexicon import read_dictionary
from convs2s.text.truecase import read_truecaser
from convs2s.training.data import TrainingData
from convs2s.training.epoch_progress import log
from convs2s.training.interruption import Interruption
from convs2s.training.memory import keep_freed_memory
from convs2s.training.recipe import Recipe
from convs2s.training.shortlisting import read_shortlist, shortlist_figures
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer, TrainerState
from convs2s.training.version import TRAINING_VERSION
from convs2s.training.workers import is_worker, joined

WITHOUT_EFFECT = ("checkpoint_minutes", "threads")
"""Settings of a recipe that are not part of a training's identity."""


@dataclass(frozen=True)
class TrainingJob:
    """One training.

    Attributes:
        folder: a task's prepared folder: ``dataset/`` and ``vocabulary/``.
        settings: a validated entry of config/models.yaml.
        seed: of the initialization, the data order and dropout.
        output: the model file to write; the state and history lie beside it.
        dictionary: the alignment dictionary to put into the model file, or None.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads of each worker.
        candidates: the alignment's candidates where the model selects its vocabulary, or None.
        time_limit: minutes after which a scheduler ends the job, or None.
        truecasers: those of source and target, to put into the model file, or None.
    """

    folder: Path
    settings: Mapping[str, Any]
    seed: int
    output: Path
    dictionary: Path | None
    device: str
    threads: int
    candidates: Path | None = None
    time_limit: float | None = None
    truecasers: Sequence[Path] | None = None


def train(job: TrainingJob) -> None:
    """Train, or go on from where an earlier process was killed, and write the model file.

    A finished training is exported again, never repeated. As one of several workers, train with
    the others.

    Raises:
        UserError: bad input, or training diverged.
        UnfinishedError: training stopped early, because of the time limit or a signal.
    """
    stop = Interruption(job.time_limit, os.getppid() if is_worker() else None)
    keep_freed_memory()
    torch.set_num_threads(job.threads)
    data = TrainingData.read(job.folder)
    torch.manual_seed(job.seed)
    network = build_network(
        job.settings["architecture"],
        *(len(Vocabulary(data.types[side])) for side in ("source", "target")),
    )
    data.check_lengths(network.positions)
    shortlist = read_shortlist(job.settings["architecture"], job.candidates, data)
    folder = StateFolder(job.output.parent / "state", identity(job, data))
    device = worker_device(pick_device(job.device), os.environ)
    with joined(device) as workers, folder.locked() if workers.is_first else nullcontext():
        workers.wait()  # for the lock
        trainer = Trainer(
            network,
            Recipe.from_settings(job.settings["training"]),
            (data.train, data.valid),
            folder,
            seed=job.seed,
            device=device,
            checkpoint_minutes=job.settings["training"]["checkpoint_minutes"],
            stop=stop,
            workers=workers,
            shortlist=shortlist,
        )
        if workers.is_first:
            say_where(trainer)
        with stop.listening():
            state = trainer.run()
        weights, loss = trainer.result()
        if workers.is_first:
            log(f"stopped: {state.schedule.stop_reason}")
            export(job, data, trainer, weights, loss)


def say_where(trainer: Trainer) -> None:
    """Say which states of other trainings are left alone, and where this one goes on."""
    for line in trainer.folder.differences():
        log(f"{line}: not loaded")
    if trainer.state.updates:
        log(f"going on in epoch {trainer.state.epoch} from {trainer.folder.last}")


def identity(job: TrainingJob, data: TrainingData) -> dict[str, Any]:
    """Return everything that a training's result depends on but the machine."""
    architecture, training = job.settings["architecture"], job.settings["training"]
    candidates = {} if job.candidates is None else {"candidates.tsv": sha256(job.candidates)}
    return {
        # What is off is left out: a training from before there was such a setting is the same one.
        "architecture": {key: value for key, value in architecture.items() if value is not None},
        "training": {
            key: value
            for key, value in training.items()
            if key not in WITHOUT_EFFECT and value is not None
        },
        "seed": job.seed,
        "data": data.checksums | candidates,
        "version": TRAINING_VERSION,
    }


def export(
    job: TrainingJob,
    data: TrainingData,
    trainer: Trainer,
    weights: Mapping[str, Tensor],
    loss: float,
) -> None:
    """Write the model file of weights with this validation loss, and the training's records."""
    folder, state, shortlist = trainer.folder, trainer.state, trainer.updater.shortlist
    summary = summarize(job, state, weights, loss)
    if shortlist is not None:
        recipe = Recipe.from_settings(job.settings["training"])
        summary["shortlist"] = shortlist_figures(shortlist, data.valid, recipe)
    description = ModelDescription(
        task=data.preparation["task"],
        languages=data.preparation["languages"],
        preparation=data.preparation["preparation"],
        architecture=dict(job.settings["architecture"]),
        source_types=data.types["source"],
        target_types=data.types["target"],
        codes=data.codes,
        glossaries=data.preparation["vocabulary"]["glossaries"],
        splittable=data.splittable,
        dictionary={} if job.dictionary is None else read_dictionary(job.dictionary),
        training=summary,
        shortlist=shortlist,
        truecasers=read_truecasers(job, data),
    )
    with atomic_text(job.output.with_name("history.jsonl")) as stream:
        for row in [*state.history, {"stop": state.schedule.stop_reason}]:
            # Sorted, as a training that went on has read its rows from a state in this order.
            stream.write(json.dumps(row, sort_keys=True) + "\n")
    with atomic_text(job.output.with_name("training.json")) as stream:
        machine = {"threads": job.threads, "workers": trainer.workers.count}
        made = {"identity": folder.identity, **machine, **manifest()}
        json.dump({**summary, "manifest": made}, stream, indent=2)
    save_model(job.output, weights, description)


def read_truecasers(job: TrainingJob, data: TrainingData) -> dict[str, list[str]]:
    """Return language -> the words of its truecaser; empty where the training has none."""
    languages = data.preparation["languages"]
    tables = zip((languages["source"], languages["target"]), job.truecasers or (), strict=False)
    return {language: read_truecaser(table) for language, table in tables}


def summarize(
    job: TrainingJob, state: TrainerState, weights: Mapping[str, Tensor], loss: float
) -> dict[str, Any]:
    """Return what ``training.json`` and the model file say of a training."""
    schedule = state.schedule
    return {
        "seed": job.seed,
        "epochs": len(state.history),
        "updates": state.updates,
        "best_epoch": schedule.best_epoch,
        "validation_perplexity": math.exp(loss),
        "stop_reason": schedule.stop_reason,
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }
