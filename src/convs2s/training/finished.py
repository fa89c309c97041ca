"""Finished trainings: write the model file and its records, and find and remove their states.

The state of a finished training is still useful. If the workflow runs the training again, for
example because its token stores were made again with the same bytes, the model is exported from the
state. Without the state it would be trained again.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from convs2s.config.model import Recipe
from convs2s.data.batches import collate
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, size_of, whole_files
from convs2s.files.checksums import forget_checksums, note_checksums
from convs2s.files.text import write_json
from convs2s.layout import results_of
from convs2s.manifest import manifest
from convs2s.model_file import (
    STATE,
    ModelDescription,
    calibrated,
    describe_model,
    kept_file,
    recorded_identity,
    save_model,
)
from convs2s.models.kernels import matmul
from convs2s.text.dictionary import read_dictionary
from convs2s.training.history import (
    EpochRecord,
    TrainingMachine,
    Validation,
    perplexity,
)
from convs2s.training.identity import TrainingJob, digest_of
from convs2s.training.loading import validation_batches
from convs2s.training.progress import write_history
from convs2s.training.start import words_of_truecasers
from convs2s.training.state_folder import LOCK, take_lock
from convs2s.training.trainer import Trainer


def export(
    job: TrainingJob,
    trainer: Trainer,
    validation: Validation,
) -> None:
    """Write the model file, then the records ``history.jsonl`` and ``training.json`` beside it.

    The trainer's network must have the weights to export (``Trainer.result``). The records are
    written last, so that no record describes a model file that does not exist.
    """
    data = trainer.data
    state = trainer.state
    shortlist = trainer.updater.shortlist
    weights = trainer.network.state_dict()
    identity = trainer.folder.identity
    summary: dict[str, object] = {
        "seed": job.seed,
        "epochs": state.epoch - 1,  # state.epoch would be the next one
        "updates": state.updates,
        "best_epoch": state.schedule.best_epoch,
        "validation_perplexity": perplexity(validation.loss),
        "stop_reason": state.schedule.stop_reason,
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }
    if validation.source_use is not None:  # there are at least two validation pairs
        summary["source_use"] = asdict(validation.source_use)
    if shortlist is not None:
        summary["shortlist"] = shortlist_figures(shortlist, data.valid, job.recipe)
    dataset = data.description
    # For the model card. Fields about the scoring of test sets are left out, so that a change of
    # them does not change the model file.
    origin = dataset.model_dump(mode="json", include={"pairs", "sources", "stand_in"})
    description = ModelDescription(
        task=dataset.task,
        languages=dataset.languages.model_dump(),
        preparation=dataset.preparation,
        architecture=job.architecture,
        source_types=data.types["source"],
        target_types=data.types["target"],
        bpe_codes=data.bpe_codes,
        glossaries=list(dataset.vocabulary.glossaries),
        splittable=data.splittable,
        dictionary={} if job.dictionary is None else read_dictionary(job.dictionary),
        training={**summary, "identity": identity, **origin},
        shortlist=shortlist,
        truecasers=words_of_truecasers(job, data),
    )
    with_scales = calibrated(description, weights)  # for decoding in int8
    save_model(job.output, weights, with_scales)
    history = job.output.with_name("history.jsonl")
    record = job.output.with_name("training.json")
    write_history(history, state.history, {"stop": state.schedule.stop_reason})
    made = {
        **manifest(),
        # The processors that trained replace the one that exports.
        **_machine_of(state.history, trainer.machine),
        "identity": identity,
        "products": matmul.in_use(),
        "precision": trainer.recipe.precision,
    }
    curve = [epoch.valid_perplexity for epoch in state.history]
    forget_checksums([record])  # write_history does the same for the history
    write_json(record, {**summary, "curve": curve, "manifest": made})
    note_checksums([history, record], results_of(job.output))
    for path in (job.output, history, record):
        _keep(path)


def _keep(path: Path) -> None:
    """Keep a file of a finished training under a second name, until the next training has ended.

    Snakemake removes the outputs of a job before it runs the job again, for example after a change
    of maximum_epochs. Without the second name, the old model would be lost before there is a new
    one.
    """
    with atomic_path(kept_file(path)) as second:
        try:
            os.link(path, second)  # takes no space
        except OSError:  # the file system has no links
            shutil.copyfile(path, second)


def _machine_of(
    history: Sequence[EpochRecord], exporting: TrainingMachine
) -> dict[str, object]:
    """Return a description of the machine that trained.

    The machine ``exporting`` is described only if no epoch names its machine. Otherwise the result
    is the machine of the last epoch, with the names of the GPUs and processors of all epochs,
    joined by semicolons. So a training that began on a GPU and ended on a CPU has a ``gpu``.
    """
    machines = [dict(epoch.machine) for epoch in history if epoch.machine]
    machine = dict(machines[-1] if machines else exporting)
    for key in ("gpu", "processor"):
        names = [str(each[key]) for each in machines if key in each]
        if names:
            different_names = dict.fromkeys(names)
            machine[key] = "; ".join(different_names)
    return machine


def shortlist_figures(
    shortlist: Shortlist,
    store: TokenStore,
    recipe: Recipe,
) -> dict[str, float]:
    """Return two figures that validation perplexity over a shortlist depends on.

    - ``types``: the mean number of target types in the shortlist of a validation batch.
    - ``outside``: the fraction of reference tokens outside of the shortlist, which count as
      ``<unk>``.
    """
    sizes = []
    outside = 0
    for rows in validation_batches(store, recipe, shortlist):
        batch = collate(store, rows)
        types = shortlist.types(batch.source)
        sizes.append(len(types))
        is_outside = np.isin(batch.target, types, invert=True)
        outside += int(is_outside.sum())
    tokens = int(store.lengths("target").sum())
    return {"types": sum(sizes) / len(sizes), "outside": outside / tokens}


def finished_states(results: Path) -> dict[Path, int]:
    """Return the folder of states of each finished training below ``results``, with its bytes.

    The folders are sorted by path. A folder is listed only if its states are those of the model
    beside it. States of another recipe, seed or corpus are not listed: they may belong to a
    training that was stopped and will be resumed.

    Raises:
        UserError: ``results`` is not a folder, or a record or a model file is damaged.
    """
    if not results.is_dir():
        raise UserError(
            f"{results}: no such folder; name the folder of the results, or of a run"
        )
    # A file of states is RUN/state/FINGERPRINT/FILE, so these folders include each RUN/state.
    folders = {path.parent.parent for path in whole_files(results)}
    finished = {}
    for folder in sorted(folders):
        record = folder.parent / "training.json"
        if folder.name != STATE or not record.is_file():
            continue
        identity = recorded_identity(record)
        states = folder / digest_of(identity)
        # The model beside the record may be that of another training.
        if states.is_dir():
            models = map(describe_model, sorted(folder.parent.glob("*.safetensors")))
            if any(model.training.get("identity") == identity for model in models):
                finished[states] = size_of(states)
    return finished


def remove_state(path: Path) -> None:
    """Remove the folder of states of a finished training.

    Raises:
        UserError: A training is running in the parent folder, or the folder cannot be removed.
    """
    folder = path.parent
    try:
        # Hold the lock, which a running training holds.
        with (folder / LOCK).open("a+", encoding="utf-8", errors="replace") as lock:
            take_lock(lock, folder)
            with suppress(FileNotFoundError):  # another process has removed the folder
                # Remove the last state first. Without the last state no other file is read, so it
                # does not matter which of them a kill leaves behind.
                (path / "last.safetensors").unlink(missing_ok=True)
                shutil.rmtree(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be removed: {error.strerror}") from None


def megabytes(size: int) -> str:
    """Return a number of bytes in MB (1 MB = 1,000,000 bytes), such as ``1,234.5 MB``."""
    return f"{size / 1e6:,.1f} MB"
