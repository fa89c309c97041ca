"""A training that has ended: its model file and records, and the states that may be removed.

A finished training reads its state once more where its model would only be exported again, such as
after its token stores were rebuilt to the same bytes. Without the state it would be trained again.
"""

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
from convs2s.files.atomic import size_of, whole_files
from convs2s.files.checksums import forget_checksums, note_checksums
from convs2s.files.text import write_json
from convs2s.layout import results_of
from convs2s.manifest import manifest
from convs2s.model_file import ModelDescription, describe_model, recorded_identity, save_model
from convs2s.models.kernels import matmul
from convs2s.text.dictionary import read_dictionary
from convs2s.training.data import TrainingData
from convs2s.training.history import EpochRecord, TrainingMachine, Validation, perplexity
from convs2s.training.identity import TrainingJob, digest_of
from convs2s.training.loading import validation_batches
from convs2s.training.progress import write_history
from convs2s.training.start import words_of_truecasers
from convs2s.training.state_folder import LOCK, STATE, take_lock
from convs2s.training.trainer import Trainer


def export(job: TrainingJob, data: TrainingData, trainer: Trainer, validation: Validation) -> None:
    """Write the model file of a trainer's network, and then the training's records.

    In this order no record speaks of a model that is not there: `finished_states` rests on both.
    """
    state = trainer.state
    shortlist = trainer.updater.shortlist
    weights = trainer.network.state_dict()
    known = trainer.folder.identity
    # What is absent is left out: a source use where there is but one validation pair, a shortlist.
    summary: dict[str, object] = {
        "seed": job.seed,
        "epochs": state.epoch - 1,
        "updates": state.updates,
        "best_epoch": state.schedule.best_epoch,
        "validation_perplexity": perplexity(validation.loss),
        "stop_reason": state.schedule.stop_reason,
        "parameters": sum(tensor.numel() for tensor in weights.values()),
    }
    if validation.source_use is not None:
        summary["source_use"] = asdict(validation.source_use)
    if shortlist is not None:
        summary["shortlist"] = shortlist_figures(shortlist, data.valid, job.recipe)
    described = data.description
    # What the model's card says of the data; nothing that scoring could change.
    origin = described.model_dump(mode="json", include={"pairs", "sources", "stand_in"})
    description = ModelDescription(
        task=described.task,
        languages=described.languages.model_dump(),
        preparation=described.preparation,
        architecture=job.architecture,
        source_types=data.types["source"],
        target_types=data.types["target"],
        bpe_codes=data.bpe_codes,
        glossaries=list(described.vocabulary.glossaries),
        splittable=data.splittable,
        dictionary={} if job.dictionary is None else read_dictionary(job.dictionary),
        training={**summary, "identity": known, **origin},
        shortlist=shortlist,
        truecasers=words_of_truecasers(job, data),
    )
    save_model(job.output, weights, description)
    history = job.output.with_name("history.jsonl")
    record = job.output.with_name("training.json")
    forget_checksums([history, record])
    write_history(history, state.history, {"stop": state.schedule.stop_reason})
    made = {
        **manifest(),
        **_machine_of(state.history, trainer.machine),
        "identity": known,
        "products": matmul.in_use(),
    }
    curve = [epoch.valid_perplexity for epoch in state.history]
    write_json(record, {**summary, "curve": curve, "manifest": made})
    note_checksums([history, record], results_of(job.output))


def _machine_of(history: Sequence[EpochRecord], exporting: TrainingMachine) -> dict[str, object]:
    """Return what trained, which may be another machine than the one that is exporting.

    That is the machine of the last epoch; of several kinds of GPUs or processors each is named.
    """
    machines = [dict(epoch.machine) for epoch in history if epoch.machine]
    machine = dict(machines[-1] if machines else exporting)
    for key in ("gpu", "processor"):
        kinds = [str(each[key]) for each in machines if key in each]
        if kinds:
            machine[key] = "; ".join(dict.fromkeys(kinds))
    return machine


def shortlist_figures(shortlist: Shortlist, store: TokenStore, recipe: Recipe) -> dict[str, float]:
    """Return what validation perplexity over a shortlist rests on.

    That is a batch's target types on average, and the share of the reference tokens that are
    outside and therefore count as unknown.
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
    """Return the folders of states of trainings that have ended -> their bytes, in order of paths.

    A state of another recipe, seed or corpus than the finished model's is none of them: it may
    belong to a training that was stopped and is to go on.

    Raises:
        UserError: There is no such folder, or the record of a training is damaged.
    """
    if not results.is_dir():
        raise UserError(f"{results}: no such folder: name one of results, or of a run")
    folders = {path.parent.parent for path in whole_files(results)}
    finished = {}
    for folder in sorted(folders):
        record = folder.with_name("training.json")
        if folder.name != STATE or not record.is_file():
            continue
        identity = recorded_identity(record)
        states = folder / digest_of(identity)
        # The record alone would not do: beside it may lie the model of another training.
        if states.is_dir():
            models = map(describe_model, sorted(folder.parent.glob("*.safetensors")))
            if any(model.training.get("identity") == identity for model in models):
                finished[states] = size_of(states)
    return finished


def remove_state(path: Path) -> None:
    """Remove the folder of states of a training that has ended.

    Raises:
        UserError: A training works there at this moment, or the folder cannot be removed.
    """
    folder = path.parent
    try:
        # Each training holds it while it runs.
        with (folder / LOCK).open("a+", encoding="utf-8", errors="replace") as lock:
            take_lock(lock, folder)
            with suppress(FileNotFoundError):  # another process has removed it before
                # First: without it the training begins anew, whatever a kill leaves of the rest.
                (path / "last.safetensors").unlink(missing_ok=True)
                shutil.rmtree(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be removed: {error.strerror}") from None


def megabytes(size: int) -> str:
    """Write bytes as MB of a million."""
    return f"{size / 1e6:,.1f} MB"
